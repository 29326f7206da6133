// Settings of data in a run file, and whole runs over streams and mixes: the bytes of a run do not
// depend on how its data is stored.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/recipes/resolve.h"
#include "tests/launch/program.h"

namespace troupe::launch::data_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Map = std::map<std::string, std::string>;

Result<recipes::Resolved> with(std::vector<std::string> sets, std::string algorithm = "sft") {
  sets.insert(sets.begin(), {"model=M", "output=O"});
  return recipes::resolve({.algorithm = std::move(algorithm),
                           .file = "",
                           .sets = std::move(sets),
                           .check_files = false});
}

TEST(DataKeys, AMixIsAListOfSources) {
  const auto got =
      with({"data.mix=[{path: a.jsonl, weight: 3, epochs: 2}, {path: [b.csv, c.csv], format: "
            "sharegpt, columns: {text: t}}]"});
  ASSERT_TRUE(got) << got.error().what;
  const auto& mix = got->config.data.mix;
  ASSERT_EQ(mix.size(), 2u);
  EXPECT_EQ(mix[0].paths, std::vector<std::string>{"a.jsonl"});
  EXPECT_EQ(mix[0].weight, 3);
  EXPECT_EQ(mix[0].epochs, 2);
  EXPECT_EQ(mix[1].layout, engine::data::Layout::messages);
  EXPECT_EQ(mix[1].columns, (Map{{"text", "t"}}));
  // The written configuration resolves to the same values.
  const auto again = recipes::config_of(recipes::to_yaml(got->config), "config.yaml");
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(recipes::to_yaml(*again), recipes::to_yaml(got->config));
  EXPECT_EQ(again->data.mix[1].paths, mix[1].paths);
}

TEST(DataKeys, AMixThatMakesNoSenseIsRefused) {
  const std::vector<std::pair<std::string, const char*>> table = {
      {"[{weight: 1}]", "needs the key path"},
      {"[{path: a, weight: 0}]", "weight: must be above 0"},
      {"[{path: a, epochs: -1}]", "epochs: must be at least 0"},
      {"[{path: a, wait: 1}]", "wait: unknown"},
      {"[a]", "a map of path, weight"},
  };
  for (const auto& [mix, words] : table) {
    const auto got = with({"data.mix=" + mix});
    ASSERT_FALSE(got) << mix;
    EXPECT_THAT(got.error().what, HasSubstr(words));
  }
  EXPECT_THAT(with({"data.path=D", "data.mix=[{path: a}]"}).error().what,
              HasSubstr("data.path is also set"));
  EXPECT_THAT(with({}).error().what, HasSubstr("data.path is not set"));
}

TEST(DataKeys, AStreamNeedsANumberOfSteps) {
  EXPECT_THAT(with({"data.path=D", "data.stream=true"}).error().what, HasSubstr("--steps N"));
  EXPECT_TRUE(with({"data.path=D", "data.stream=true", "train.steps=9"}));
  EXPECT_THAT(
      with({"data.path=D", "data.stream=true", "train.steps=9", "dpo.precompute_reference=true"},
           "dpo")
          .error()
          .what,
      HasSubstr("scores every pair before the first step"));
}

TEST(DataKeys, MindSpeedsColumnMapsAreUnderstood) {
  const auto alpaca =
      with({"data.path=D",
            R"(data.map_keys={"prompt":"problem","query":"","response":"answer","system":null})"});
  ASSERT_TRUE(alpaca) << alpaca.error().what;
  EXPECT_EQ(alpaca->config.data.columns,
            (Map{{"instruction", "problem"}, {"input", ""}, {"output", "answer"}, {"system", ""}}));
  const auto sharegpt = with(
      {"data.path=D",
       R"(data.map_keys={"messages":"talk","tags":{"role_tag":"who","user_tag":"client"},"kto_tag":"ok"})"});
  ASSERT_TRUE(sharegpt) << sharegpt.error().what;
  EXPECT_EQ(sharegpt->config.data.columns, (Map{{"messages", "talk"}, {"label", "ok"}}));
  EXPECT_EQ(sharegpt->config.data.tags, (Map{{"role_tag", "who"}, {"user_tag", "client"}}));
  EXPECT_EQ(with({"data.path=D", "data.tags.user_tag=client"})->config.data.tags,
            (Map{{"user_tag", "client"}}));
  EXPECT_THAT(with({"data.path=D", R"(data.map_keys={"promt":"x"})"}).error().what,
              AllOf(HasSubstr("data.map_keys (--set)"), HasSubstr("did you mean prompt?")));
  EXPECT_THAT(with({"data.path=D", "data.map_keys=x"}).error().what,
              HasSubstr("a map is expected"));
}

class DataRuns : public testing::Test {
 protected:
  DataRuns() {
    std::string one, two = "prompt,completion\n";
    for (int i = 0; i < 14; ++i)
      one += cat("{\"prompt\":\"Tell a story, number ", i, ".\",\"completion\":\" There were ", i,
                 " cats.\"}\n");
    for (int i = 0; i < 6; ++i) two += cat("\"Say, ", i, "\",\" No, ", i, ".\"\n");
    EXPECT_TRUE(write_file_durably(folder_ + "/one.jsonl", one));
    EXPECT_TRUE(write_file_durably(folder_ + "/two.csv", two));
  }

  std::string arguments(const std::string& output, const std::string& more) const {
    return cat("train --algorithm sft --set model=", data("models/stories260k/hf"),
               " --set output=", folder_, '/', output,
               " --set train.steps=8 --set train.batch_size=4 --set train.max_length=64 --set "
               "train.learning_rate=1e-3 "
               "--set train.save_every=2 --set train.keep_last=0 --set train.threads=1 ",
               more);
  }
  std::string rows() const {
    return cat("--set 'data.path=[", folder_, "/*.jsonl, ", folder_, "/two.csv]' ");
  }
  std::string mix() const {
    return cat("--set 'data.mix=[{path: ", folder_, "/one.jsonl, weight: 2}, {path: ", folder_,
               "/two.csv}]' ");
  }
  std::string text(const std::string& path) const {
    return read_file(cat(folder_, '/', path)).value_or("no file");
  }
  void expect_equal(const std::string& one, const std::string& other,
                    std::vector<const char*> files) const {
    for (const char* file : files) {
      EXPECT_TRUE(text(one + file) == text(other + file)) << file;
      EXPECT_NE(text(one + file), "no file") << file;
    }
  }
  void run(const std::string& output, const std::string& more) const {
    const ProgramOutput said = run_program(arguments(output, more));
    ASSERT_EQ(said.code, 0) << said.err;
  }
  void run_with_kills(const std::string& output, const std::string& more) const {
    const std::string command =
        cat("'" TROUPE_PROGRAM "' ", arguments(output, more), " >", folder_, "/log 2>&1");
    int kills = 0;
    for (double seconds = 0.02; kills < 40; seconds += 0.03, ++kills)
      if (std::system(cat("timeout -s KILL ", to_text(seconds, 2), " ", command).c_str()) == 0)
        break;
    ASSERT_EQ(std::system(command.c_str()), 0) << text("log");
  }

  static constexpr const char* weights = "/checkpoint-8/model.safetensors";
  const std::vector<const char*> all{weights, "/checkpoint-8/training/optimizer.safetensors",
                                     "/checkpoint-8/training/state.json", "/metrics.jsonl"};
  std::string folder_ = scratch_folder();
};

TEST_F(DataRuns, AStreamInOneBlockLearnsTheSameBits) {
  run("memory", rows());
  run("stream", rows() + "--set data.stream=true");
  expect_equal("memory", "stream", {weights, "/metrics.jsonl"});
}

TEST_F(DataRuns, AStreamResumesWithTheSameBitsAfterAnyKill) {
  const std::string stream = rows() + "--set data.stream=true --set data.shuffle_buffer=6";
  run("whole", stream);
  run_with_kills("killed", stream);
  expect_equal("whole", "killed", all);
}

TEST_F(DataRuns, APartOfTheRowsLearnsTheSameBitsAfterAnyKill) {
  const std::string part = "--set data.max_samples=15 --set data.split=0.2 --set eval.every=3 ";
  // 12 rows, two and a half times.
  const std::string fraction =
      rows() + part + "--set train.steps=0 --set train.epochs=2.5 --set train.warmup_ratio=0.3";
  run("whole", fraction);
  run_with_kills("killed", fraction);
  expect_equal("whole", "killed", all);
  EXPECT_THAT(text("whole/metrics.jsonl"), HasSubstr("eval/loss"));
  const std::string stream = rows() + part + "--set data.stream=true --set data.shuffle_buffer=5";
  run("stream", stream);
  run_with_kills("killed-stream", stream);
  expect_equal("stream", "killed-stream", all);
}

TEST_F(DataRuns, AMixResumesWithTheSameBitsAfterAnyKill) {
  run("whole", mix());
  run_with_kills("killed", mix());
  expect_equal("whole", "killed", all);
}

}  // namespace
}  // namespace troupe::launch::data_test
