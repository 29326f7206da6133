// What surrounds a run: closed standard streams, limits of memory and open files, its log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/journal/events_file.h"
#include "tests/launch/program.h"
#include "tests/support/sanitized.h"

namespace troupe::launch::environment_test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

class Environment : public testing::Test {
 protected:
  ~Environment() override {
    if (!HasFailure()) std::filesystem::remove_all(folder_);
  }
  std::string path(const std::string& below) const { return folder_ + "/" + below; }
  std::string text(const std::string& name) const { return read_file(path(name)).value_or(""); }
  std::string train(const std::string& algorithm, const std::string& more = "") const {
    return cat("train --algorithm ", algorithm, " --set model=", data("models/digit-completion"),
               " --set data.path=", rows_, " --set output=", path("out"),
               " --set train.batch_size=4 --set train.max_length=64 --set train.threads=1 --set "
               "'reward=[{rule: exact_match}]' --set rollout.max_new_tokens=12 --set "
               "grpo.group_size=4 --set grpo.beta=0 ",
               more);
  }
  std::string sft(const std::string& more = "") const {
    return cat("train --algorithm sft --set model=", data("models/digit-completion"),
               " --set data.path=", rows_, " --set output=", path("out"),
               " --set train.batch_size=4 --set train.threads=1 --set train.steps=3 ", more);
  }
  std::string cluster() const {
    EXPECT_TRUE(write_file_durably(path("cluster.yaml"),
                                   "groups: [{role: policy}, {role: rollout}, {role: verifier}]"));
    return cat("launch --cluster ", path("cluster.yaml"), " -- ");
  }
  /// The exit code of a bash script in which "troupe" is the program.
  int script(const std::string& lines) const {
    EXPECT_TRUE(write_file_durably(
        path("script"), cat("troupe() { '" TROUPE_PROGRAM "' \"$@\"; }\n", lines, "\n")));
    const int status = std::system(cat("bash ", path("script"), " 2>", path("err")).c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string events() const {
    for (const auto& entry : std::filesystem::directory_iterator(path("out")))
      if (entry.path().filename().string().starts_with("events."))
        return value_or_throw(read_file(entry.path().string()));
    return "";
  }

  std::string folder_ = scratch_folder(), rows_ = folder_ + "/rows.jsonl";
  Environment() {
    std::string rows;
    for (int i = 0; i < 8; ++i)
      rows +=
          cat("{\"prompt\":\"1,2,", i, ":\",\"completion\":\"", i, "\",\"answer\":\"", i, "\"}\n");
    EXPECT_TRUE(write_file_durably(rows_, rows));
  }
};

/// Number of TFRecord frames; -1 if anything else is between them.
int records(std::string_view file) {
  int count = 0;
  for (; !file.empty(); ++count) {
    std::uint64_t size = 0;
    if (file.size() < 16) return -1;
    std::memcpy(&size, file.data(), sizeof size);
    if (size > file.size() - 16) return -1;
    const std::string frame = journal::tf_record(file.substr(12, size));
    if (!file.starts_with(frame)) return -1;
    file.remove_prefix(frame.size());
  }
  return count;
}

class ClosedStreams : public Environment, public testing::WithParamInterface<const char*> {};

TEST_P(ClosedStreams, DoNotBecomeFilesOfARun) {
  ASSERT_EQ(
      script(cat("troupe ", sft("--set train.save_every=1 --set train.keep_last=0 "), GetParam())),
      0);
  const auto lines = json_lines(text("out/metrics.jsonl"));
  ASSERT_EQ(lines.size(), 3u) << text("out/metrics.jsonl");
  EXPECT_EQ(records(events()), 5) << "version, restart, three steps";
  EXPECT_EQ(run_program("info " + path("out/checkpoint-1")).code, 0);
  EXPECT_EQ(run_program("info " + path("out/checkpoint-3")).code, 0);
  EXPECT_THAT(text("out/logs/train.log"), HasSubstr("saved "));
}

TEST_P(ClosedStreams, DoNotBecomeFilesOfALaunch) {
  ASSERT_EQ(script(cat("troupe ", cluster(), train("grpo", "--set train.steps=2 "), GetParam())),
            0);
  EXPECT_EQ(json_lines(text("out/metrics.jsonl")).size(), 2u);
  EXPECT_EQ(records(events()), 4);
  EXPECT_THAT(text("out/logs/rollout.log"), HasSubstr("is ready"));
}

INSTANTIATE_TEST_SUITE_P(All, ClosedStreams,
                         testing::Values(">&- 2>&- <&-", ">&- 2>&-", "2>&-", "<&-", ">&-"),
                         [](const auto& each) {
                           std::string name;
                           for (const char c : std::string_view(each.param))
                             name += c == '>' ? "Out" : c == '2' ? "Err" : c == '<' ? "In" : "";
                           return name;
                         });

TEST_F(Environment, ResultsForAClosedStdoutAreAnError) {
  EXPECT_EQ(script(cat("troupe tokenize --model ", data("models/digit-completion"),
                       " <<<'{\"text\":\"1\"}' >&-")),
            7);
  EXPECT_THAT(text("err"), HasSubstr("cannot write to stdout"));
}

TEST_F(Environment, TooLittleAddressSpaceIsOutOfMemoryWithTheLimit) {
#ifdef TROUPE_SANITIZED
  GTEST_SKIP() << "a sanitizer needs terabytes of address space";
#endif
  // The KV cache of the rollout alone is larger.
  const int code =
      script(cat("ulimit -v 1500000; exec '" TROUPE_PROGRAM "' ",
                 train("grpo", "--set train.steps=2 --set rollout.cache_tokens=8000000")));
  EXPECT_EQ(code, 10) << text("err");
  EXPECT_THAT(text("err"), HasSubstr("ulimit -v limits the address space to 1500000 KiB; "));
  EXPECT_THAT(text("err"), Not(HasSubstr("report it")));
}

TEST_F(Environment, AnyAddressSpaceEndsARun) {
#ifdef TROUPE_SANITIZED
  GTEST_SKIP() << "a sanitizer needs terabytes of address space";
#endif
  // From one in which the program cannot be loaded to one in which the run succeeds.
  int succeeded = 0, ran_out = 0;
  for (int mib = 72; mib <= 200 && succeeded < 2; mib += 2) {
    const int code = script(cat("rm -rf ", path("out"), "; ulimit -v ", mib * 1024,
                                "; exec timeout -s KILL 120 '" TROUPE_PROGRAM "' ", sft(),
                                " --set train.threads=2 --set train.save_every=1"));
    if (code == 127) continue;  // the program itself cannot be loaded
    EXPECT_THAT(code, AnyOf(0, 10)) << mib << " MiB: " << text("err");
    succeeded += code == 0;
    ran_out += code == 10;
  }
  EXPECT_EQ(succeeded, 2);
  EXPECT_GT(ran_out, 0);
}

TEST_F(Environment, TooFewOpenFilesEndALaunchWithTheLimit) {
#ifdef TROUPE_SANITIZED
  GTEST_SKIP() << "a sanitizer opens files of its own";
#endif
  for (const int files : {12, 16, 20, 30}) {
    const int code =
        script(cat("rm -rf ", path("out"), "; ulimit -n ", files, "; exec '" TROUPE_PROGRAM "' ",
                   cluster(), train("grpo", "--set train.steps=1")));
    EXPECT_EQ(code, 7) << files << ": " << text("err");
    EXPECT_THAT(text("err"), HasSubstr(cat("Too many open files (ulimit -n allows ", files, ")")));
  }
}

TEST_F(Environment, TooFewOpenFilesEndARunWithTheLimit) {
#ifdef TROUPE_SANITIZED
  GTEST_SKIP() << "a sanitizer opens files of its own";
#endif
  for (int files = 4; files <= 24; ++files) {
    const int code = script(
        cat("rm -rf ", path("out"), "; ulimit -n ", files, "; exec '" TROUPE_PROGRAM "' ", sft()));
    if (code == 127) continue;  // the program itself cannot be loaded
    EXPECT_THAT(code, AnyOf(0, 7)) << files << ": " << text("err");
    if (code == 7) {
      EXPECT_THAT(text("err"), HasSubstr(cat("(ulimit -n allows ", files, ")"))) << files;
    }
  }
}

const std::string date = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[.][0-9]{3}Z ";

TEST_F(Environment, ALogHasDatesWarningsAndTheReasonOfAFailure) {
  // The schedule's warm-up is longer than the run: a warning from before the log is opened.
  ASSERT_EQ(run_program(sft("--set train.schedule=constant --set train.learning_rate=1e-30")).code,
            0);
  const std::string first = text("out/logs/train.log");
  EXPECT_THAT(first, MatchesRegex(cat("(", date, "[IWE] .*\n)+")));
  EXPECT_THAT(first, HasSubstr(" I step 3: saved "));
  const ProgramOutput refused = run_program(sft("--set resume=never"));
  EXPECT_EQ(refused.code, 2);
  const std::string second = text("out/logs/train.log");
  EXPECT_TRUE(second.starts_with(first)) << "restarts append";
  EXPECT_THAT(second.substr(first.size()), HasSubstr(" E "));
  EXPECT_THAT(second, HasSubstr("already contains a run"));
}

TEST_F(Environment, QuietShowsWarningsAndErrorsOnly) {
  const ProgramOutput quiet = run_program(sft() + "--quiet");
  EXPECT_EQ(quiet.code, 0) << quiet.err;
  EXPECT_THAT(quiet.err, Not(HasSubstr(" I ")));
  EXPECT_THAT(quiet.err, Not(HasSubstr("step 1/3")));
  EXPECT_THAT(text("out/logs/train.log"), HasSubstr(" I step 3: saved "));
  std::filesystem::remove_all(path("out"));
  const ProgramOutput loud = run_program(sft() + "--log-level debug");
  EXPECT_THAT(loud.err, HasSubstr(" D "));
  EXPECT_THAT(loud.err, HasSubstr("step 1/3"));
  EXPECT_EQ(run_program(sft() + "--log-level banana").code, 2);
  EXPECT_EQ(run_program(sft() + "--log-level info --quiet").code, 2);
}

TEST_F(Environment, LevelsReachTheGroupsOfALaunch) {
  const ProgramOutput said =
      run_program(cluster() + train("grpo", "--set train.steps=1 --log-level debug"));
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.err, HasSubstr(" D starting policy: "));
  EXPECT_THAT(text("out/logs/controller.log"), MatchesRegex(cat("(", date, "[DIWE] .*\n)+")));
  EXPECT_THAT(text("out/logs/rollout.log"), MatchesRegex(cat("(.*\n)*", date, "D .*\n(.*\n)*")));
}

}  // namespace
}  // namespace troupe::launch::environment_test
