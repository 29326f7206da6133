// Where a configuration comes from: paths with ~, standard input, numbers at their bounds, and the
// exit codes of what is missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/config/paths.h"
#include "launch/config/schema.h"
#include "launch/recipes/resolve.h"
#include "launch/run/identity_parts.h"
#include "tests/launch/program.h"

namespace troupe::launch::sources_test {
namespace {

using testing::AllOf, testing::HasSubstr, testing::Not;

Result<recipes::Resolved> resolved(std::vector<std::string> sets,
                                   const std::string& algorithm = "sft") {
  sets.insert(sets.begin(), {"model=M", "data.path=D", "output=O"});
  return recipes::resolve(
      {.algorithm = algorithm, .file = "", .sets = std::move(sets), .check_files = false});
}

TEST(Paths, BeginWithTheHomeDirectory) {
  const std::string home = std::getenv("HOME");
  auto got = resolved(
      {"model=~", "output=~/runs/x", "data.path=[~/a.jsonl, b~]", "eval.path=~/held out.jsonl",
       "dpo.reference=~/ref", "resume=~/c", "chat_template=~/t.jinja", "lora.adapter=~/adapter"},
      "dpo");
  ASSERT_TRUE(got) << got.error().what;
  config::RunConfig& c = got->config;
  EXPECT_EQ(c.model, home);
  EXPECT_EQ(c.output, home + "/runs/x");
  EXPECT_EQ(c.data.paths, (std::vector<std::string>{home + "/a.jsonl", "b~"}));
  EXPECT_EQ(c.eval.path, (std::vector<std::string>{home + "/held out.jsonl"}));
  EXPECT_EQ(c.dpo.reference, home + "/ref");
  EXPECT_EQ(c.resume, home + "/c");
  EXPECT_EQ(c.chat_template, home + "/t.jinja");
  EXPECT_EQ(c.lora.adapter, home + "/adapter");
  const auto reward = resolved({"reward=[{rule: model, path: ~/rm}]"}, "grpo");
  ASSERT_TRUE(reward) << reward.error().what;
  EXPECT_EQ(reward->config.reward[0].options.find("path")->string(), home + "/rm");
}

TEST(Paths, OfAnotherUserAreRejected) {
  const auto got = resolved({"output=~somebody/runs"});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Errc::usage);
  EXPECT_THAT(got.error().what, AllOf(HasSubstr("output = \"~somebody/runs\""),
                                      HasSubstr("write the home directory of the user in full")));
}

TEST(Paths, NeverMakeAFolderCalledTilde) {
  const std::string folder = scratch_folder(), program = cat("cd ", folder, " && HOME=", folder,
                                                             "/user '" TROUPE_PROGRAM "' ");
  const auto shell = [&](const std::string& arguments) {
    return std::system(cat(program, arguments, " >log 2>&1 </dev/null").c_str());
  };
  const std::string model = data("models/stories260k/hf");
  ASSERT_TRUE(write_file_durably(folder + "/r.jsonl", "{\"prompt\":\"a\",\"completion\":\"b\"}\n"));
  EXPECT_EQ(shell(cat("train --algorithm sft --set model=", model,
                      " --set data.path=r.jsonl --set train.steps=1 --set output=~/run")),
            0)
      << read_file(folder + "/log").value_or("");
  EXPECT_TRUE(std::filesystem::exists(folder + "/user/run/latest"));
  EXPECT_EQ(shell(cat("train --algorithm sft --set lora.rank=2 --set model=", model,
                      " --set data.path=r.jsonl --set train.steps=1 --set output=adapter")),
            0);
  EXPECT_EQ(shell(cat("merge --model=", model, " --adapter=adapter/latest --output=~/merged")), 0);
  EXPECT_TRUE(std::filesystem::exists(folder + "/user/merged/config.json"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/~"));
}

TEST(IntegerSettings, HaveUpperBoundsThatNoConversionExceeds) {
  for (const config::Field& field : config::fields()) {
    if (field.kind != config::ValueKind::whole) continue;
    EXPECT_TRUE(std::isfinite(field.range.low)) << field.key;
    EXPECT_LE(field.range.high, 9007199254740992.0) << field.key;
  }
  for (const char* set :
       {"rollout.cache_tokens=68719478336", "rollout.cache_tokens=100000000000",
        "train.keep_last=4294967298", "grpo.epochs=4294967297", "rollout.max_new_tokens=4294967297",
        "train.steps=99999999999999999999"}) {
    const auto got = resolved({set, "reward=exact_match"}, "grpo");
    ASSERT_FALSE(got) << set;
    EXPECT_THAT(got.error().what, HasSubstr("at most ")) << set;
  }
  EXPECT_THAT(
      resolved({"rollout.cache_tokens=68719478336", "reward=exact_match"}, "grpo").error().what,
      HasSubstr("the nearest valid value is 2147483632"));
}

TEST(ExitCodes, OfMissingFilesAreFour) {
  const std::string folder = scratch_folder(), rows = folder + "/rows.jsonl",
                    model = data("models/stories260k/hf");
  ASSERT_TRUE(write_file_durably(rows, "{\"prompt\":\"a\",\"completion\":\"b\"}\n"));
  const auto train = [&](const std::string& more) {
    return run_program(cat("train --algorithm sft --set train.steps=1 --set model=", model,
                           " --set data.path=", rows, " --set output=", folder, "/out ", more))
        .code;
  };
  EXPECT_EQ(train("--set model=/nowhere"), 4);
  EXPECT_EQ(train("--set data.path=/nowhere.jsonl"), 4);
  EXPECT_EQ(train("--set eval.path=/nowhere.jsonl"), 4);
  EXPECT_EQ(train("--set lora.adapter=/nowhere"), 4);
  EXPECT_EQ(train("--set chat_template=/nowhere.jinja"), 4);
  EXPECT_EQ(train("--set resume=/nowhere"), 4);
  EXPECT_EQ(train("--config /nowhere.yaml"), 4);
  EXPECT_EQ(train("--set model=/nowhere --set train.steps=-1"), 2) << "not the only problem";
  EXPECT_EQ(run_program(cat("launch --cluster /nowhere.yaml -- train --algorithm sft --set model=",
                            model, " --set data.path=", rows, " --set output=", folder, "/out"))
                .code,
            4);
  EXPECT_EQ(run_program("generate --model /nowhere --prompt x").code, 4);
  EXPECT_EQ(run_program(cat("score --model ", model, " --data ", rows)).code, 2)
      << "a language model";
  EXPECT_FALSE(std::filesystem::exists(folder + "/out"));
}

TEST(ExitCodes, OfUnusableRowsAreThree) {
  const std::string folder = scratch_folder(), rows = folder + "/rows.jsonl";
  ASSERT_TRUE(write_file_durably(rows, "{\"left\":\"a\",\"right\":\"b\"}\n"));
  const ProgramOutput said = run_program(
      cat("train --algorithm sft --set model=", data("models/stories260k/hf"),
          " --set data.path=", rows, " --set data.max_bad_rows=5 --set output=", folder, "/out"));
  EXPECT_EQ(said.code, 3);
  EXPECT_THAT(said.err, HasSubstr("rows.jsonl:1: the row's columns fit no known layout"));
}

TEST(ConfigFiles, MayBeStandardInputOrAPipe) {
  const std::string folder = scratch_folder();
  const std::string yaml =
      cat("algorithm: sft\nmodel: ", data("models/stories260k/hf"), "\noutput: ", folder,
          "/out\ndata: {path: ", data("datasets/math/gsm8k_train_head.jsonl"),
          "}\ntrain: {steps: 17}\n");
  for (const char* input : {"-", "/dev/stdin"}) {
    const ProgramOutput said = run_program(cat("explain --config ", input), yaml);
    EXPECT_EQ(said.code, 0) << said.err;
    EXPECT_THAT(said.out, HasSubstr(cat("17                          ", input, ":")));
  }
  ASSERT_TRUE(write_file_durably(folder + "/run.yaml", yaml));
  EXPECT_EQ(std::system(cat("bash -c \"'" TROUPE_PROGRAM "' explain --config <(cat ", folder,
                            "/run.yaml)\" >", folder, "/log 2>&1")
                            .c_str()),
            0)
      << read_file(folder + "/log").value_or("");
}

TEST(ConfigFiles, TwoAreRejectedByName) {
  const ProgramOutput said = run_program("explain --config a.yaml --config b.yaml");
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.err, AllOf(HasSubstr("a.yaml, b.yaml"), HasSubstr("--set key=value")));
}

TEST(MaximumLength, AboveTheModelsIsReportedAndRecorded) {
  const std::string folder = scratch_folder();
  const ProgramOutput said = run_program(cat(
      "train --algorithm sft --set model=", data("models/stories260k/hf"),
      " --set data.path=", data("datasets/math/gsm8k_train_head.jsonl"), " --set output=", folder,
      "/out --set train.steps=1 --set train.batch_size=1 --set train.max_length=4096"));
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.err, HasSubstr("train.max_length = 4096: the model has 512 positions"));
  EXPECT_THAT(read_file(folder + "/out/config.yaml").value_or(""),
              HasSubstr("  max_length: 512\n"));
}

TEST(DiskSpace, IsComparedWithACheckpointBeforeTheRun) {
  const std::string folder = scratch_folder(), disk = folder + "/disk";
  std::filesystem::create_directory(disk);
  const auto with_disk = [&](const char* size, const std::string& command) {
    return std::system(cat("unshare -rm sh -c \"mount -t tmpfs -o size=", size, " tmpfs ", disk,
                           " && ", command, "\" >", folder, "/log 2>&1")
                           .c_str());
  };
  if (with_disk("1m", "true") != 0) GTEST_SKIP() << "no file system can be mounted here";
  const std::string train =
      cat("'" TROUPE_PROGRAM
          "' train --algorithm sft --set train.steps=1 --set train.batch_size=1 "
          "--set model=",
          data("models/stories260k/hf"),
          " --set data.path=", data("datasets/math/gsm8k_train_head.jsonl"), " --set output=", disk,
          "/out");
  EXPECT_EQ(WEXITSTATUS(with_disk("2m", train)), 7);
  const std::string refused = read_file(folder + "/log").value_or("");
  EXPECT_THAT(refused, testing::ContainsRegex("a checkpoint needs 3 MiB, 1 MiB are free in "));
  EXPECT_THAT(refused, Not(HasSubstr("step 1/1")));
  EXPECT_EQ(with_disk("5m", train), 0);
  EXPECT_THAT(read_file(folder + "/log").value_or(""),
              HasSubstr("train.keep_last: 3 more checkpoints of 3 MiB need 9 MiB, 4 MiB are free"));
}

TEST(Identity, EverySettingWithoutEffectIsASetting) {
  int without_effect = 0;
  for (const config::Field& field : config::fields())
    without_effect += !run::affects_results(field.key);
  EXPECT_GT(without_effect, 20);
  for (const char* key : {"train.learning_rate", "train.batch_size", "train.dtype", "parallel.tp",
                          "train.micro_batch_tokens", "data.shuffle", "grpo.group_size", "reward"})
    EXPECT_TRUE(config::find_field(key) && run::affects_results(key)) << key;
  for (const char* key : {"train.threads", "train.log_every", "output", "profile.enabled"})
    EXPECT_TRUE(config::find_field(key) && !run::affects_results(key)) << key;
}

TEST(DamagedCheckpoints, AreNotUsedByAnyCommand) {
  const std::string folder = scratch_folder(), model = data("models/stories260k/hf"),
                    rows = folder + "/rows.jsonl", saved = folder + "/out/latest";
  ASSERT_TRUE(write_file_durably(rows, "{\"prompt\":\"a\",\"completion\":\"b\"}\n"));
  const std::string shared =
      cat(" --set data.path=", rows, " --set train.steps=1 --set output=", folder);
  ASSERT_EQ(run_program(cat("train --algorithm sft --set model=", model, shared, "/out")).code, 0);
  EXPECT_EQ(run_program(cat("generate --model ", saved, " --prompt a --max-new-tokens 1")).code, 0);
  std::string bytes = value_or_throw(read_file(saved + "/model.safetensors"));
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  ASSERT_TRUE(write_file_durably(saved + "/model.safetensors", bytes));
  for (const std::string& command :
       {cat("generate --model ", saved, " --prompt a --max-new-tokens 1"),
        cat("chat --model ", saved), cat("logprobs --model ", saved),
        cat("score --model ", saved, " --data ", rows),
        cat("merge --model ", saved, " --adapter ", saved, " --output ", folder, "/merged"),
        cat("train --algorithm sft --set model=", saved, shared, "/next")}) {
    const ProgramOutput said = run_program(command);
    EXPECT_EQ(said.code, 5) << command << said.err;
  }
  const ProgramOutput said = run_program(cat("generate --model ", saved, " --prompt a"));
  EXPECT_THAT(said.err, AllOf(HasSubstr("model.safetensors: expected checksum"),
                              HasSubstr(cat("remove ", saved, "/training"))));
  std::filesystem::remove_all(saved + "/training");
  EXPECT_EQ(run_program(cat("generate --model ", saved, " --prompt a --max-new-tokens 1")).code, 0);
}

}  // namespace
}  // namespace troupe::launch::sources_test
