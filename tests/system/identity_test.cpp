// A run that resumes is compared with what it was created from: each kind of change is rejected or
// reported, wherever the run is started.
#include <gmock/gmock.h>

#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/running_checksum.h"
#include "tests/system/child.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

namespace fs = std::filesystem;
using launch::data, launch::ProgramOutput;
using testing::AllOf, testing::HasSubstr, testing::Not;

class IdentityOfARun : public SystemRuns {
 protected:
  /// A copy of a model in this test's folder.
  std::string copy(const std::string& name, const std::string& of = "models/stories260k/hf") const {
    fs::copy(data(of), path(name), fs::copy_options::recursive);
    return path(name);
  }
  /// Replaces the weights of `model` with others of the same shape.
  void train_again(const std::string& model) const {
    run(arguments("sft", "other", "--set train.steps=1"));
    fs::copy_file(path("other/latest/model.safetensors"), model + "/model.safetensors",
                  fs::copy_options::overwrite_existing);
  }
  void swap(const std::string& file, const std::string& old, const std::string& by) const {
    std::string text = value_or_throw(read_file(file));
    const auto at = text.find(old);
    ASSERT_NE(at, std::string::npos) << file;
    text.replace(at, old.size(), by);
    ASSERT_TRUE(write_file_durably(file, text));
  }
  std::string sft(const std::string& model, int steps, const std::string& more = "") const {
    return arguments("sft", "run",
                     cat("--set model='", model, "' --set train.steps=", steps,
                         " --set train.schedule=constant ", more));
  }
  std::string dpo(const std::string& reference, int steps) const {
    return arguments("dpo", "run",
                     cat("--set dpo.reference='", reference, "' --set train.steps=", steps,
                         " --set train.schedule=constant"));
  }
  std::string grpo(const std::string& more, int steps) const {
    return arguments("grpo", "run",
                     cat("--set train.schedule=constant --set train.steps=", steps, ' ', more));
  }
  /// Expects that resuming is rejected before anything is written, with a message that names the
  /// part and a way out.
  void expect_rejected(const std::string& arguments, const std::string& part,
                       const std::string& now) const {
    const std::string before = value_or_throw(read_file(path("run/config.yaml")));
    const ProgramOutput said = launch::run_program(arguments);
    EXPECT_EQ(said.code, 2) << said.err;
    EXPECT_THAT(said.err, AllOf(HasSubstr(cat("cannot resume from ", path("run/checkpoint-2"))),
                                HasSubstr(part), HasSubstr(now), HasSubstr("--set output=NEW")));
    EXPECT_EQ(value_or_throw(read_file(path("run/config.yaml"))), before);
    EXPECT_EQ(fs::read_symlink(path("run/latest")), "checkpoint-2");
  }
};

TEST_F(IdentityOfARun, RejectsAModelOfAnotherShape) {
  const std::string model = copy("model");
  run(sft(model, 2));
  expect_rejected(sft(data("models/digit-completion"), 4), "model: config.json had ",
                  data("models/digit-completion/config.json"));
}

TEST_F(IdentityOfARun, RejectsAnotherModelOfTheSameShape) {
  const std::string model = copy("model"), other = copy("base");
  train_again(other);
  run(sft(model, 2));
  expect_rejected(sft(other, 4), "model: model.safetensors had ",
                  other + "/model.safetensors has ");
  const ProgramOutput fresh = launch::run_program(arguments(
      "sft", "new", cat("--set model='", path("run/checkpoint-2"), "' --set train.steps=1")));
  EXPECT_EQ(fresh.code, 0) << fresh.err;
}

TEST_F(IdentityOfARun, RejectsAnotherTokenizer) {
  const std::string model = copy("model");
  run(sft(model, 2));
  swap(model + "/tokenizer_config.json", "{", "{\"extra\": 1, ");
  expect_rejected(sft(model, 4), "tokenizer: tokenizer_config.json had ",
                  model + "/tokenizer_config.json has ");
}

TEST_F(IdentityOfARun, RejectsAnotherReference) {
  const std::string reference = copy("reference");
  run(dpo(reference, 2));
  train_again(reference);
  expect_rejected(dpo(reference, 4), "reference: model.safetensors had ", reference);
  EXPECT_EQ(launch::run_program(dpo(copy("original"), 4)).code, 0);
}

TEST_F(IdentityOfARun, RejectsAnotherRewardModelBehindTheSameLink) {
  const std::string shared =
      cat("--set model='", data("models/digit-completion"), "' --set train.batch_size=1 ");
  for (const char* name : {"first", "second"})
    run(arguments("orm", name,
                  cat(shared, "--set train.steps=1 --set train.seed=", name[0] == 'f' ? 1 : 2)));
  fs::create_directory_symlink("first/latest", path("rater"));
  const std::string reward =
      cat("--set 'reward=[{rule: model, path: \"", path("rater"), "\", label: rater}]'");
  run(grpo(reward, 2));
  fs::remove(path("rater"));
  fs::create_directory_symlink("second/latest", path("rater"));
  expect_rejected(grpo(reward, 4), "reward model rater: model.safetensors had ", path("rater"));
}

TEST_F(IdentityOfARun, RejectsAnotherBaseOfAnAdapter) {
  const std::string model = copy("model");
  const std::string lora = "--set lora.rank=2";
  run(sft(model, 2, lora));
  train_again(model);
  expect_rejected(sft(model, 4, lora), "model: model.safetensors had ",
                  cat("--set model=", model, " --set lora.adapter=", path("run/checkpoint-2")));
}

TEST_F(IdentityOfARun, RejectsOtherData) {
  const std::string rows = path("rows.jsonl"), model = data("models/stories260k/hf");
  fs::copy_file(data("datasets/math/gsm8k_train_head.jsonl"), rows);
  const std::string given = cat("--set data.path='", rows, "'");
  run(sft(model, 2, given));
  swap(rows, "clips", "chips");
  expect_rejected(sft(model, 4, given), "data: rows.jsonl had ", rows);
}

TEST_F(IdentityOfARun, RejectsAnotherSeed) {
  const std::string model = data("models/stories260k/hf");
  run(sft(model, 2));
  expect_rejected(sft(model, 4, "--set train.seed=7"), "train.seed: 0 in the run, now 7", "");
}

TEST_F(IdentityOfARun, ReportsEverySettingThatChanged) {
  const std::string model = data("models/stories260k/hf");
  run(sft(model, 2));
  const std::string said = run(sft(model, 4,
                                   "--set train.learning_rate=2e-3 --set train.batch_size=2 --set "
                                   "train.threads=2 --set train.save_every=1"));
  EXPECT_THAT(said, AllOf(HasSubstr("train.learning_rate: 0.001 in the run, now 0.002"),
                          HasSubstr("train.batch_size: 4 in the run, now 2"),
                          HasSubstr("train.steps: 2 in the run, now 4")));
  EXPECT_THAT(said, AllOf(Not(HasSubstr("train.threads:")), Not(HasSubstr("train.save_every:"))));
  EXPECT_THAT(run(sft(model, 6, "--set train.learning_rate=2e-3 --set train.batch_size=2")),
              Not(HasSubstr("learning_rate:")));
  const auto starts = launch::json_lines(value_or_throw(read_file(path("run/starts.jsonl"))));
  ASSERT_EQ(starts.size(), 3u);
  EXPECT_EQ(starts[0].find("settings")->find("train.learning_rate")->string(), "0.001");
  EXPECT_EQ(starts[1].find("settings")->find("train.learning_rate")->string(), "0.002");
  EXPECT_EQ(starts[1].find("step")->integer(), 2);
  EXPECT_EQ(starts[1].find("changed")->array().size(), 3u);
  EXPECT_EQ(starts[2].find("changed")->array().size(), 1u);
}

TEST_F(IdentityOfARun, ReportsAnotherGroupSize) {
  const std::string rule = "--set reward=exact_match ";
  run(grpo(rule, 2));
  EXPECT_THAT(run(grpo(rule + "--set grpo.group_size=2", 4)),
              HasSubstr("grpo.group_size: 4 in the run, now 2"));
}

TEST_F(IdentityOfARun, AcceptsMovedCopiedAndLinkedFolders) {
  const std::string model = copy("model"), rows = path("rows.jsonl");
  fs::copy_file(data("datasets/math/gsm8k_train_head.jsonl"), rows);
  run(sft(model, 2, cat("--set data.path='", rows, "'")));
  fs::rename(model, path("moved"));
  fs::rename(rows, path("elsewhere.jsonl"));
  fs::create_directory_symlink("moved", path("link"));
  const std::string given = cat("--set data.path='", path("elsewhere.jsonl"), "'");
  run(sft(path("moved"), 3, given));
  run(sft(path("link"), 4, given));
  run(sft(copy("copied"), 5, given));
  for (const Json& start : launch::json_lines(value_or_throw(read_file(path("run/starts.jsonl")))))
    for (const Json& change : start.find("changed")->array())
      EXPECT_EQ(change.find("key")->string(), "train.steps");
}

TEST_F(IdentityOfARun, ReadsWeightsOnceAndRemembersThem) {
  const std::string model = copy("model");
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(model + "/model.safetensors", old);
  run(sft(data("models/stories260k/hf"), 2));
  const std::string cache = path("run/.fingerprints.json");
  // The repository's files are older than two seconds, so their checksums were remembered.
  const std::string sum = value_or_throw(engine::checkpoint::measure_file(
                                             data("models/stories260k/hf/model.safetensors")))
                              .xxh3_128;
  swap(cache, sum, std::string(32, '0'));
  run(sft(data("models/stories260k/hf"), 2));  // a damaged file is not used
  // A remembered checksum is used: with another one, the model counts as another.
  swap(cache, sum, std::string(32, '0'));
  const Json changed = value_or_throw(read_json(cache));
  engine::checkpoint::RunningChecksum own;
  own.add(changed.find("files")->dump());
  swap(cache, changed.find("xxh3_128")->string(), own.xxh3_128());
  expect_rejected(sft(data("models/stories260k/hf"), 4), "model: model.safetensors had ",
                  std::string(32, '0'));
  EXPECT_EQ(launch::run_program(sft(model, 4)).code, 0) << "a copy is another file, and is read";
}

TEST_F(IdentityOfARun, ResumesFromACheckpointWithoutARecord) {
  const std::string model = data("models/stories260k/hf"), folder = path("run/checkpoint-2");
  run(sft(model, 2));
  const std::string state = folder + "/training/state.json",
                    manifest = folder + "/training/manifest.json";
  Json json = value_or_throw(read_json(state));
  for (auto& [key, value] : json.object())
    if (key == "state")
      std::erase_if(value.object(), [](const auto& member) { return member.first == "identity"; });
  ASSERT_TRUE(write_file_durably(state, json.dump(1) + "\n"));
  fs::remove(manifest);
  ASSERT_TRUE(write_file_durably(
      manifest, engine::checkpoint::to_text(
                    value_or_throw(engine::checkpoint::measure_checkpoint(folder, 2)))));
  EXPECT_THAT(run(sft(model, 4, "--set train.learning_rate=2e-3")),
              HasSubstr("checkpoint-2 does not record what its run was created from"));
}

TEST_F(IdentityOfARun, ComparesACheckpointThatIsNamedExplicitly) {
  const std::string model = data("models/stories260k/hf"), other = copy("base");
  run(sft(model, 2));
  train_again(other);
  const auto from_it = [&](const std::string& of) {
    return arguments("sft", "next",
                     cat("--set model='", of,
                         "' --set train.schedule=constant --set train.steps=4 "
                         "--set resume='",
                         path("run/checkpoint-2"), "'"));
  };
  const ProgramOutput said = launch::run_program(from_it(other));
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.err, HasSubstr("model: model.safetensors had "));
  EXPECT_THAT(run(from_it(model)), HasSubstr("train.steps: 2 in the run, now 4"));
}

TEST_F(IdentityOfARun, IsComparedBeforeProcessesStart) {
  const std::string model = copy("model");
  run(sft(model, 2));
  train_again(model);
  ASSERT_TRUE(write_file_durably(path("cluster.yaml"), "groups: [{role: policy}]\n"));
  expect_rejected(cat("launch --cluster '", path("cluster.yaml"), "' -- ", sft(model, 4)),
                  "model: model.safetensors had ", model);
  EXPECT_FALSE(fs::exists(path("run/logs/policy.log")));
}

TEST_F(IdentityOfARun, IsComparedByRankZeroUnderMpirun) {
  if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "mpirun is not installed";
  const std::string model = copy("model");
  run(sft(model, 2, "--set parallel.dp=2"));
  train_again(model);
  Child mpirun(cat("env ASAN_OPTIONS=detect_leaks=0 mpirun --allow-run-as-root --oversubscribe -n "
                   "2 ",
                   command(sft(model, 4, "--set parallel.dp=2"))),
               log());
  EXPECT_EQ(mpirun.wait(), 2);
  EXPECT_THAT(value_or_throw(read_file(log())), HasSubstr("model: model.safetensors had "));
}

}  // namespace
}  // namespace troupe::test
