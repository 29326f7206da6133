// The first rows of published data sets, each read for what it is made for, with the settings that
// docs/formats.md names and no others.
#include <gmock/gmock.h>

#include "engine/data/layouts/steps.h"
#include "engine/data/loader/dataset.h"
#include "tests/engine/data/scratch.h"

namespace troupe::engine::data {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Set {
  const char* file;
  Purpose purpose;
  Layout layout;
  std::size_t examples;
  std::map<std::string, std::string> columns = {};
  ReadOptions reading = {};
  std::vector<std::string> reward_tokens = {};  // of rows with placeholders
};

const std::vector<std::string> mmlu = {"question", "A", "B", "C", "D", "answer"};

std::vector<Set> published() {
  return {
      {"alpaca/gpteacher_roleplay_head.json", Purpose::sft, Layout::alpaca, 8},
      {"alpaca/user_oriented_instructions_head.jsonl",
       Purpose::sft,
       Layout::alpaca,
       8,
       {{"input", "instances.0.input"}, {"output", "instances.0.output"}}},
      {"sharegpt/glaive_toolcall_zh_demo_head.json", Purpose::sft, Layout::messages, 5},
      {"pairwise/kto_en_demo_head.json", Purpose::unpaired, Layout::messages, 8},
      {"pairwise/dpo_en_demo_head.json", Purpose::unpaired, Layout::pairwise, 20},
      {"math/gsm8k_test_head.jsonl", Purpose::sft, Layout::question_answer, 10},
      {"prm/math_shepherd_samples.jsonl",
       Purpose::steps,
       Layout::placeholders,
       7,
       {},
       {},
       {"+", "-"}},
      {"prm/prmbench_confidence.shepherd_head.jsonl",
       Purpose::steps,
       Layout::placeholders,
       4,
       {},
       {},
       {"+", "-"}},
      {"prm/prm800k_samples.jsonl", Purpose::steps, Layout::prm800k, 6},
      {"prm/big_bench_mistake_logical_deduction_head.jsonl", Purpose::steps, Layout::steps, 5},
      {"prm/big_bench_mistake_multistep_arithmetic_head.jsonl", Purpose::steps, Layout::steps, 10},
      {"prm/prmbench_confidence_head.jsonl",
       Purpose::steps,
       Layout::steps,
       4,
       {{"prompt", "modified_question"}, {"completions", "modified_process"}}},
      {"pretrain/tinyshakespeare_head.txt",
       Purpose::sft,
       Layout::text,
       1,
       {},
       {.sample_by = SampleBy::document}},
      {"pretrain/tinystories_train_head.txt",
       Purpose::sft,
       Layout::text,
       12,
       {},
       {.sample_by = SampleBy::separator}},
      {"pretrain/wiki_demo_head.txt", Purpose::sft, Layout::text, 10},
      {"pretrain/c4_demo_head.jsonl", Purpose::sft, Layout::text, 4},
      {"eval/HumanEval_head.jsonl.gz",
       Purpose::prompts,
       Layout::prompt_answer,
       10,
       {{"answer", "canonical_solution"}}},
      {"eval/boolq_dev_head.jsonl", Purpose::prompts, Layout::prompt_answer, 6},
      {"eval/aqua-rat_head.jsonl",
       Purpose::prompts,
       Layout::prompt_answer,
       6,
       {{"answer", "label"}}},
      {"eval/sat-math_head.jsonl",
       Purpose::prompts,
       Layout::prompt_answer,
       6,
       {{"answer", "label"}}},
      {"eval/bbh_boolean_expressions_head.json",
       Purpose::prompts,
       Layout::prompt_answer,
       10,
       {{"prompt", "input"}, {"answer", "target"}}},
      {"eval/bbh_boolean_expressions_cot.txt",
       Purpose::sft,
       Layout::text,
       1,
       {},
       {.sample_by = SampleBy::document}},
      {"eval/mmlu_abstract_algebra_dev.csv",
       Purpose::prompts,
       Layout::prompt_answer,
       5,
       {},
       {.column_names = mmlu}},
      {"eval/mmlu_high_school_european_history_dev.csv",
       Purpose::sft,
       Layout::question_answer,
       5,
       {},
       {.column_names = mmlu}},
  };
}

// Has a token for Math-Shepherd's placeholder.
class Shepherd : public ByteEncoder {
 public:
  Result<std::vector<std::int32_t>> encode(std::string_view text, bool add_special) const override {
    constexpr std::string_view mark = "\xD0\xBA\xD0\xB8";  // ки
    std::vector<std::int32_t> out;
    for (bool first = true;; first = false) {
      const auto at = text.find(mark);
      const auto piece =
          value_or_throw(ByteEncoder::encode(text.substr(0, at), add_special && first));
      out.insert(out.end(), piece.begin(), piece.end());
      if (at == std::string_view::npos) return out;
      out.push_back(2);
      text.remove_prefix(at + mark.size());
    }
  }
};

template <class T>
void expect_read(const Set& set, const DataOptions& options, const TextEncoder& encoder) {
  const auto data = load<T>(options, encoder);
  ASSERT_TRUE(data) << set.file << ": " << data.error().what;
  EXPECT_EQ(data->report.layout, set.layout) << set.file;
  EXPECT_EQ(data->examples.size(), set.examples) << set.file;
  EXPECT_EQ(data->report.bad + data->report.untrainable, 0) << set.file;
}

TEST(PublishedData, IsReadInTheRightLayout) {
  const Shepherd encoder;
  for (const auto& set : published()) {
    DataOptions options{.paths = {data_file("datasets/" + std::string(set.file))},
                        .columns = set.columns,
                        .reading = set.reading};
    if (!set.reward_tokens.empty())
      options.encode.steps.tokens =
          value_or_throw(find_step_tokens("\xD0\xBA\xD0\xB8", set.reward_tokens, encoder));
    if (set.purpose == Purpose::sft) expect_read<SftExample>(set, options, encoder);
    if (set.purpose == Purpose::unpaired) expect_read<UnpairedExample>(set, options, encoder);
    if (set.purpose == Purpose::steps) expect_read<StepExample>(set, options, encoder);
    if (set.purpose == Purpose::prompts) expect_read<PromptRow>(set, options, encoder);
  }
}

std::vector<std::int32_t> labelled_ids(const StepExample& example) {
  std::vector<std::int32_t> out;
  for (const auto step : example.classes)
    if (step >= 0) out.push_back(step);
  return out;
}

TEST(PublishedData, StepsAreLabelledAsTheirPublishersSay) {
  const Shepherd encoder;
  const auto steps = [&](const std::string& file, std::map<std::string, std::string> columns,
                         bool placeholders) {
    DataOptions options{.paths = {data_file("datasets/prm/" + file)},
                        .columns = std::move(columns)};
    if (placeholders)
      options.encode.steps.tokens =
          value_or_throw(find_step_tokens("\xD0\xBA\xD0\xB8", {"+", "-"}, encoder));
    std::vector<std::vector<std::int32_t>> out;
    for (const auto& example : value_or_throw(load<StepExample>(options, encoder)).examples)
      out.push_back(labelled_ids(example));
    return out;
  };
  using Steps = std::vector<std::int32_t>;
  // mistake_index 3 of 5 steps: three right, one wrong, the last one without a label.
  EXPECT_EQ(steps("big_bench_mistake_multistep_arithmetic_head.jsonl", {}, false)[0],
            (Steps{1, 1, 1, 0}));
  // The chosen completions; where an error ended the solution the first one.
  const auto prm800k = steps("prm800k_samples.jsonl", {}, false);
  EXPECT_EQ(prm800k[0].back(), 1);
  EXPECT_EQ(prm800k[1].back(), 0);
  EXPECT_EQ(prm800k[4].back(), 1);  // a human wrote it
  // Reward tokens are class 0 (+) and 1 (-), in the order of prm.reward_tokens.
  EXPECT_EQ(steps("math_shepherd_samples.jsonl", {}, true)[0], (Steps{0, 0, 0, 0, 1}));
}

TEST(PublishedData, AnswersOfAKtoRowAreItsLastTurn) {
  const auto data = value_or_throw(load<UnpairedExample>(
      {.paths = {data_file("datasets/pairwise/kto_en_demo_head.json")}}, ByteEncoder()));
  EXPECT_THAT(text_of_ids(data.examples[0].prompt),
              StartsWith("<user>The Federal Trade Commission"));
  EXPECT_THAT(text_of_ids(data.examples[0].answer), StartsWith("Ooh ooh ah ah!"));
}

TEST(PublishedData, OfACodeTaskTheSolutionIsTheAnswer) {
  const auto data =
      value_or_throw(load<PromptRow>({.paths = {data_file("datasets/eval/HumanEval_head.jsonl.gz")},
                                      .columns = {{"answer", "canonical_solution"}}},
                                     ByteEncoder()));
  EXPECT_THAT(data.examples[0].text, HasSubstr("def has_close_elements"));
  EXPECT_THAT(data.examples[0].answer.string(), HasSubstr("for idx, elem in enumerate(numbers)"));
  EXPECT_EQ(*data.examples[0].columns.find("entry_point"), Json("has_close_elements"));
}

}  // namespace
}  // namespace troupe::engine::data
