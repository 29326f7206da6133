// Runs that go wrong in a known way warn by its name, and a healthy one does not warn.
//
// The model learns to copy the two numbers before the colon of its prompt, "8,3:9,4S", and to write
// the first one only in two of five rows, so that there is a reward to gain and one to lose.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class NamedWarnings : public SystemRuns {
 protected:
  using Answer = std::function<std::string(const std::string& both, std::size_t row)>;

  /// Rows `first` to `last` of the demo's prompts, with other answers.
  std::string rows(const std::string& name, std::size_t first, std::size_t last,
                   const Answer& answer) const {
    const auto all = launch::json_lines(
        value_or_throw(read_file(TROUPE_SOURCE "/launch/quickstart/train.jsonl")));
    std::string text;
    for (std::size_t row = first; row < last; ++row) {
      const std::string prompt = all[row].find("prompt")->string();
      const std::string both = prompt.substr(0, prompt.find(':'));
      text += Json(Json::Object{{"prompt", prompt}, {"answer", answer(both, row)}}).dump() + '\n';
    }
    value_or_throw(write_file_durably(path(name), text));
    return path(name);
  }
  static std::string both(const std::string& numbers, std::size_t) { return numbers; }
  static std::string only_first(const std::string& numbers, std::size_t) {
    return numbers.substr(0, numbers.find(','));
  }

  void learn_the_task() const {
    const auto mixed = [](const std::string& numbers, std::size_t row) {
      return row % 5 < 2 ? only_first(numbers, row) : both(numbers, row);
    };
    run(cat("train --config '" TROUPE_SOURCE "/launch/quickstart/sft.yaml' --set train.threads=1 "
            "--set model='" TROUPE_SOURCE "/launch/quickstart/model' --set train.log_every=0 "
            "--set train.learning_rate=3e-3 --set train.batch_size=64 --set train.steps=30 "
            "--set data.path='",
            rows("mixed.jsonl", 0, 600, mixed), "' --set output='", path("model"), "'"));
    rows("held-out.jsonl", 700, 740, both);
  }
  /// The warnings of a run over `rows`, whose held-out rows want both numbers.
  std::vector<std::string> warnings(const std::string& output, const std::string& rows,
                                    const std::string& rate, const std::string& more = "") const {
    const std::string said = run(
        cat("train --algorithm grpo --set reward=exact_match --set model='", path("model/latest"),
            "' --set data.path='", rows, "' --set output='", path(output),
            "' --set train.threads=1 --set train.log_every=0 --set train.steps=14 "
            "--set train.batch_size=16 --set grpo.group_size=4 --set rollout.max_new_tokens=8 "
            "--set train.max_length=32 --set train.schedule=constant --set train.warmup_steps=0 "
            "--set train.save_every=0 --set eval.samples=4 --set eval.path='",
            path("held-out.jsonl"), "' --set train.learning_rate=", rate, ' ', more));
    std::vector<std::string> found;
    for (std::size_t at = 0; (at = said.find(" W ", at)) != std::string::npos; ++at)
      found.push_back(said.substr(at + 3, said.find('\n', at) - at - 3));
    return found;
  }
};

TEST_F(NamedWarnings, OfACollapsedAHealthyAndAHackingRun) {
  learn_the_task();
  const std::string right = rows("right.jsonl", 0, 700, both),
                    wrong = rows("wrong.jsonl", 0, 700, only_first);
  for (const char* every : {"--set eval.every=4", "--set eval.every=7"}) {
    EXPECT_THAT(warnings(cat("collapsed", every), right, "3e-2", every),
                ElementsAre(HasSubstr("policy collapse: ")));
    EXPECT_THAT(warnings(cat("healthy", every), right, "5e-4", every), IsEmpty());
    // The reward that is trained on is not the one that is wanted.
    EXPECT_THAT(warnings(cat("hacking", every), wrong, "1e-3", every),
                ElementsAre(AllOf(HasSubstr("reward hacking: the training reward rose from "),
                                  HasSubstr("while eval/reward fell to "))));
  }
}

TEST_F(NamedWarnings, OfAnEvaluatedRewardBelowItsStart) {
  learn_the_task();
  // Weights that shrink forget what they were trained to do.
  EXPECT_THAT(warnings("fell", rows("right.jsonl", 0, 700, both), "1e-3",
                       "--set eval.every=4 --set train.weight_decay=60"),
              ElementsAre(testing::MatchesRegex("step [0-9]+: eval/reward fell to .*")));
}

}  // namespace
}  // namespace troupe::test
