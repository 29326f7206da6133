// Links that somebody else has put into an output directory: a run neither writes through them nor
// creates anything behind them, whether it continues or ends with a message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/hostile/folder.h"

namespace troupe::hostile {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

/// A link `name` in the output directory, and whether a run with it continues.
struct Planted {
  const char* test;
  const char* name;
  bool continues;
};
void PrintTo(const Planted& each, std::ostream* out) {
  *out << each.name;
}

class OutputLinks : public testing::TestWithParam<Planted> {
 protected:
  OutputLinks()
      : folder_(cat(testing::TempDir(), "planted_",
                    testing::UnitTest::GetInstance()->current_test_info()->name())) {
    folder_.model()
        .write("rows.jsonl", "{\"prompt\":\"a\",\"answer\":\"b\"}\n")
        .directory("out")
        .directory("victims")
        .write("victims/file", "precious")
        .directory("victims/folder");
    fs::create_directories(fs::path(folder_.path() + "/out/" + GetParam().name).parent_path());
  }
  ~OutputLinks() override { fs::remove_all(folder_.path()); }

  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  /// Plants the link in a shell that becomes the run, so that "$$" is the process id of the run.
  int run(const std::string& target, const std::string& more = "") const {
    std::string name = GetParam().name;
    if (const auto at = name.find("SECOND"); at != std::string::npos) name = every_second();
    const std::string script =
        cat("for name in ", name, "; do ln -s '", path(target), "' '", path("out"),
            "'/$name; done; exec '" TROUPE_PROGRAM
            "' train --algorithm grpo --set model=@ --set data.path=@/rows.jsonl --set "
            "output=@/out --set train.batch_size=1 --set train.steps=2 --set grpo.group_size=2 "
            "--set rollout.max_new_tokens=4 --set 'reward=[{rule: length, max: 3}]' ",
            more);
    folder_.write("script", placed(script, folder_.path()));
    const int status =
        std::system(cat("sh '", path("script"), "' >'", path("log"), "' 2>&1 </dev/null").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  /// Names of event files of the next minute.
  static std::string every_second() {
    std::string names;
    for (std::int64_t second = std::time(nullptr), end = second + 60; second < end; ++second)
      names += cat("events.out.tfevents.", second, ".troupe ");
    return names;
  }
  void expect_victims_unharmed(int code) const {
    const std::string said = read_file(path("log")).value_or("");
    EXPECT_EQ(code, GetParam().continues ? 0 : 7) << said;
    if (!GetParam().continues) {
      EXPECT_THAT(said, testing::AnyOf(HasSubstr("is a symbolic link, which is not followed here"),
                                       HasSubstr("Too many levels of symbolic links")));
    }
    EXPECT_EQ(value_or_throw(read_file(path("victims/file"))), "precious");
    EXPECT_FALSE(fs::exists(path("victims/new"))) << "created through a link";
    EXPECT_TRUE(fs::is_empty(path("victims/folder")));
  }

  Folder folder_;
};

TEST_P(OutputLinks, ToAFileAreNotWrittenThrough) {
  expect_victims_unharmed(run("victims/file", "--set profile.enabled=true"));
}

TEST_P(OutputLinks, ToNothingCreateNothing) {
  expect_victims_unharmed(run("victims/new", "--set profile.enabled=true"));
}

TEST_P(OutputLinks, ToAFolderAreNotEntered) {
  expect_victims_unharmed(run("victims/folder", "--set profile.enabled=true"));
}

const Planted all_links[] = {
    {"Samples", "samples.txt", true},
    {"SampleLines", "samples.jsonl", false},
    {"Metrics", "metrics.jsonl", false},
    {"Timings", "timings.jsonl", true},
    {"Timeline", "timeline.jsonl", true},
    {"OlderTimeline", "timeline.jsonl.1", true},
    {"TimelinePlot", "timeline.svg", true},
    {"Plot", "plot.svg", true},
    {"Configuration", "config.yaml", true},
    {"TemporaryConfiguration", "config.yaml.tmp-$$", true},
    {"TemporaryPlot", "plot.svg.tmp-$$", true},
    {"Events", "events.out.tfevents.SECOND.troupe", true},
    {"Logs", "logs", false},
    {"Log", "logs/train.log", false},
    {"Profile", "profile", false},
    {"Trace", "profile/rank0.trace.json", true},
    {"StepBoard", ".profile_steps", true},
    {"Lock", ".lock", false},
    {"TemporaryCheckpoint", ".tmp-checkpoint-2-$$", true},
    {"TemporaryLink", ".tmp-latest-$$", true},
};
INSTANTIATE_TEST_SUITE_P(All, OutputLinks, testing::ValuesIn(all_links),
                         [](const auto& each) { return std::string(each.param.test); });

class OutputModes : public testing::Test {
 protected:
  ~OutputModes() override { fs::remove_all(folder_.path()); }
  /// Runs without a umask and returns the permissions of a file of the output.
  void run(const std::string& more) const {
    folder_.model().write("rows.jsonl", "{\"prompt\":\"a\",\"answer\":\"b\"}\n");
    const std::string command = placed(
        cat("umask 0; '" TROUPE_PROGRAM
            "' train --algorithm grpo --set model=@ --set data.path=@/rows.jsonl --set "
            "output=@/out --set train.batch_size=1 --set train.steps=1 --set grpo.group_size=2 "
            "--set rollout.max_new_tokens=4 --set 'reward=[{rule: length, max: 3}]' --profile ",
            more, " >@/log 2>&1"),
        folder_.path());
    ASSERT_EQ(std::system(command.c_str()), 0) << *read_file(folder_.path() + "/log");
  }
  unsigned mode_of(const std::string& name) const {
    struct stat found {};
    EXPECT_EQ(::stat((folder_.path() + "/out/" + name).c_str(), &found), 0) << name;
    return found.st_mode & 0777;
  }
  Folder folder_{testing::TempDir() + "output_modes"};
};

constexpr const char* own_files[] = {"config.yaml",   "metrics.jsonl",  "samples.txt",
                                     "samples.jsonl", "timeline.jsonl", "plot.svg",
                                     "timings.jsonl", "timeline.svg",   "logs/train.log"};

TEST_F(OutputModes, ArePrivateByDefaultExceptForCheckpoints) {
  run("");
  for (const char* file : own_files) EXPECT_EQ(mode_of(file), 0600u) << file;
  for (const char* folder : {"logs", "profile"}) EXPECT_EQ(mode_of(folder), 0700u) << folder;
  EXPECT_EQ(mode_of("checkpoint-1"), 0777u);
  EXPECT_EQ(mode_of("checkpoint-1/model.safetensors"), 0666u);
}

TEST_F(OutputModes, FollowTheUmaskOnRequest) {
  run("--set output_mode=umask");
  for (const char* file : own_files) EXPECT_EQ(mode_of(file), 0666u) << file;
  for (const char* folder : {"logs", "profile"}) EXPECT_EQ(mode_of(folder), 0777u) << folder;
  EXPECT_EQ(mode_of("checkpoint-1/model.safetensors"), 0666u);
}

}  // namespace
}  // namespace troupe::hostile
