// async.mode free: the program trains with weights that arrive while it samples, in every placement
// and after kills.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "engine/base/database/database.h"
#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/system/child.h"
#include "tests/system/runs.h"

namespace troupe::test::free_test {
namespace {

using testing::HasSubstr;

constexpr std::size_t batch_samples = 4 * 2 * 4;  // of settings_of("grpo")

class Free : public SystemRuns {
 protected:
  static std::string settings(int eta, const std::string& more = "") {
    return cat("--set async.mode=free --set async.eta=", eta,
               " --set train.schedule=constant --set train.save_every=2 --set train.keep_last=0 "
               "--set train.steps=12 --set rollout.record=all ",
               more);
  }
  static std::string two_lanes() { return "--set rollout.threads=1 --set train.threads=1 "; }
  std::vector<Json> lines(const std::string& file) const {
    return launch::json_lines(value_or_throw(read_file(path(file))));
  }
  /// Six batches, each of whose samples was trained on once, and none too old.
  void expect_complete(const std::string& output, double eta) const {
    std::size_t steps = 0;
    for (const auto& line : lines(output + "/metrics.jsonl")) {
      if (!line.find("loss")) continue;
      ++steps;
      EXPECT_LE(line.find("staleness/max")->number(), eta);
      EXPECT_GE(line.find("rollout/interrupted")->number(), 0);
    }
    EXPECT_EQ(steps, 12u);
    std::vector<std::int64_t> ids;
    for (const auto& sample : lines(output + "/samples.jsonl"))
      ids.push_back(sample.find("sample_id")->integer());
    ASSERT_EQ(ids.size(), 6 * batch_samples);
    EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), ids.size());
    // An id is that of the prompt times the size of a group, plus the place in the group.
    for (std::size_t i = 0; i < ids.size(); ++i)
      EXPECT_EQ(ids[i], ids[i - i % 4] + static_cast<std::int64_t>(i % 4)) << i;
  }
};

TEST_F(Free, TrainsOnEverySampleOnceInEveryPlacement) {
  run(arguments("grpo", "one", settings(1)));
  expect_complete("one", 1);
  run(arguments("grpo", "two", settings(4, two_lanes() + "--set async.partial=restart")));
  expect_complete("two", 4);
  value_or_throw(write_file_durably(path("cluster.yaml"),
                                    "groups: [{role: policy}, {role: reference}, {role: rollout, "
                                    "count: 2}, {role: verifier}]"));
  run(cat("launch --cluster '", path("cluster.yaml"), "' -- ",
          arguments("grpo", "cluster", settings(1, "--set async.cache=keep"))));
  expect_complete("cluster", 1);
}

TEST_F(Free, TrainsPpoWithWeightsOfTheSamples) {
  run(arguments("ppo", "a", settings(1, two_lanes())));
  bool corrected = false;
  for (const auto& line : lines("a/metrics.jsonl"))
    corrected |= line.find("sampling/importance_sampling_ratio/max") != nullptr;
  EXPECT_TRUE(corrected);
}

TEST_F(Free, AKilledRunResumes) {
  const std::string parts =
      arguments("grpo", "killed", settings(2, two_lanes() + "--set rollout.top_p=0.8"));
  for (std::size_t steps = 1; steps < 12; steps += 4) {
    Child child(command(parts), log());
    ASSERT_TRUE(child.until([&] { return steps_written("killed") >= steps; }));
    child.signal(SIGKILL);
    child.wait();
  }
  run(parts);
  expect_complete("killed", 2);
  // What a checkpoint had was not sampled again.
  auto database = value_or_throw(Database::open(path("killed/ledger.db"), Database::Access::read));
  auto rows = value_or_throw(database.prepare(
      "SELECT count(*), count(DISTINCT each.value) FROM surviving, json_each(samples) AS each "
      "WHERE kind = 'sampled'"));
  ASSERT_TRUE(value_or_throw(rows.next()));
  EXPECT_EQ(rows.integer(0), rows.integer(1));
  EXPECT_EQ(rows.integer(1), static_cast<std::int64_t>(6 * batch_samples));
  EXPECT_FALSE(std::filesystem::exists(path("killed/latest/training/samples.safetensors")));
}

// The bits of each token are those of a forward pass of the checkpoint of its version.
TEST_F(Free, ACheckpointReproducesTheTokensOfItsVersion) {
  run(arguments("grpo", "a",
                settings(2, two_lanes()) +
                    "--set grpo.minibatches=1 --set train.save_every=1 --set train.batch_size=8"));
  const auto samples = lines("a/samples.jsonl");
  std::map<std::int64_t, std::string>
      questions;  // of a version: the sequences that have its tokens
  std::map<std::int64_t, std::vector<std::pair<const Json*, std::size_t>>> asked;
  for (const auto& sample : samples) {
    Json::Array ids = sample.find("prompt_ids")->array();
    const auto& generated = sample.find("ids")->array();
    ids.insert(ids.end(), generated.begin(), generated.end());
    std::size_t first = 0;
    for (const auto& version : sample.find("versions")->array()) {
      const std::int64_t number = version.array()[0].integer();
      questions[number] += Json().set("ids", Json(ids)).dump() + "\n";
      asked[number].emplace_back(&sample, first);
      first += static_cast<std::size_t>(version.array()[1].integer());
    }
  }
  EXPECT_GE(questions.size(), 4u);
  for (const auto& [version, text] : questions) {
    const std::string model = version == 0 ? launch::data("models/digit-completion")
                                           : path(cat("a/checkpoint-", version));
    const auto said = launch::run_program(cat("logprobs --quiet --model '", model, "'"), text);
    ASSERT_EQ(said.code, 0) << said.err;
    const auto answers = launch::json_lines(said.out);
    ASSERT_EQ(answers.size(), asked[version].size());
    for (std::size_t n = 0; n < answers.size(); ++n) {
      const auto& [sample, first] = asked[version][n];
      const auto& recorded = sample->find("logprobs")->array();
      const auto& found = answers[n].find("logprobs")->array();
      const std::size_t prompt = found.size() - recorded.size();
      std::size_t count = 0;
      for (const auto& run : sample->find("versions")->array())
        if (run.array()[0].integer() == version)
          count = static_cast<std::size_t>(run.array()[1].integer());
      for (std::size_t t = first; t < first + count; ++t)
        ASSERT_EQ(static_cast<float>(found[prompt + t].number()),
                  static_cast<float>(recorded[t].number()))
            << "sample " << sample->find("sample_id")->integer() << ", token " << t;
    }
  }
}

}  // namespace
}  // namespace troupe::test::free_test
