#include "actors/sandbox/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace troupe::actors::sandbox {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::Not;

std::string why(const std::vector<std::string>& run, const Limits& limits = {}) {
  const auto plan = make_plan(run, limits, "reward[0]");
  return plan ? "planned" : plan.error().what;
}

class Script {
 public:
  Script()
      : path_(std::filesystem::path(testing::TempDir()) /
              ("troupe-script-" + std::to_string(::getpid()) + ".sh")) {
    std::ofstream(path_) << "true\n";
  }
  ~Script() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(SandboxPlan, AProgramThatIsNotThereIsRefusedWithWhatWasTried) {
  EXPECT_EQ(why({"/no/such/program"}),
            "reward[0]: no program \"/no/such/program\" that may be run; tried /no/such/program");
  EXPECT_THAT(why({"troupe-no-such-program"}),
              AllOf(HasSubstr("tried "), HasSubstr("/bin/troupe-no-such-program")));
  EXPECT_THAT(why({}), HasSubstr("expected a program and its arguments"));
  EXPECT_THAT(why({"/usr"}), HasSubstr("no program \"/usr\""));
}

TEST(SandboxPlan, AFileToReadThatIsNotThereIsRefused) {
  Limits limits;
  limits.read = {"/no/such/data"};
  EXPECT_EQ(why({"true"}, limits),
            "reward[0]: no file or folder \"/no/such/data\" that \"read\" names");
}

TEST(SandboxPlan, FilesThatTheCommandNamesAreShownAndNothingElseOfTheirFolder) {
  const Script script;
  const auto here = std::filesystem::current_path();
  std::filesystem::current_path(testing::TempDir());
  const auto plan = make_plan(
      {"sh", "-e", std::filesystem::path(script.path()).filename().string()}, {}, "reward[0]");
  std::filesystem::current_path(here);
  ASSERT_TRUE(plan) << plan.error().what;
  EXPECT_EQ(plan->run, (std::vector<std::string>{"sh", "-e", script.path()}));
  EXPECT_THAT(plan->mounts, Contains(Field(&Mount::to, "/new" + script.path())));
  EXPECT_THAT(plan->mounts, Not(Contains(Field(&Mount::to, "/new/tmp"))));
  EXPECT_THAT(plan->mounts, Not(Contains(Field(&Mount::to, "/new/etc"))));
}

// The second mount could not create its file, in a file system that is read-only by then.
TEST(SandboxPlan, AFileThatIsNamedTwiceIsMountedOnce) {
  const Script script;
  Limits limits;
  limits.read = {script.path()};
  const auto plan = make_plan({"sh", script.path()}, limits, "reward[0]");
  ASSERT_TRUE(plan) << plan.error().what;
  EXPECT_EQ(std::count_if(plan->mounts.begin(), plan->mounts.end(),
                          [&](const Mount& mount) { return mount.to == "/new" + script.path(); }),
            1);
}

TEST(SandboxPlan, NothingOfOurEnvironmentIsHandedOn) {
  ::setenv("TROUPE_TEST_SECRET", "a key", 1);
  const auto plan = make_plan({"true"}, {}, "reward[0]");
  ::unsetenv("TROUPE_TEST_SECRET");
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->environment, Not(Contains(HasSubstr("TROUPE_TEST_SECRET"))));
  EXPECT_THAT(plan->environment, Contains("PATH=/usr/local/bin:/usr/bin:/bin"));
}

TEST(SandboxPlan, LimitsThatMakeNoSenseAreRefused) {
  const auto why_not = [](auto change) {
    Limits limits;
    change(limits);
    const auto valid = limits.validate("reward[0].options");
    return valid ? "valid" : valid.error().what;
  };
  EXPECT_EQ(why_not([](Limits&) {}), "valid");
  EXPECT_EQ(why_not([](Limits& l) { l.memory_mb = 1; }),
            "reward[0].options.memory_mb = 1: must be between 16 and 1048576");
  EXPECT_EQ(why_not([](Limits& l) { l.address_mb = 100; }),
            "reward[0].options.address_mb = 100: must be 0 or at least memory_mb, which is 512");
  EXPECT_THAT(why_not([](Limits& l) { l.processes = 0; }), HasSubstr("processes = 0"));
  EXPECT_THAT(why_not([](Limits& l) { l.file_mb = 0; }), HasSubstr("file_mb = 0"));
  EXPECT_THAT(why_not([](Limits& l) { l.cpu_seconds = 0; }), HasSubstr("cpu_seconds = 0"));
}

}  // namespace
}  // namespace troupe::actors::sandbox
