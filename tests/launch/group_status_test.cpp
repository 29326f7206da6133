// status.json of a launch: written every moment, read as it was written, or refused.
#include "launch/run/group_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "actors/runtime/thread_scheduler.h"
#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/cluster/status_writer.h"
#include "tests/launch/program.h"

namespace troupe::launch::group_status_test {
namespace {

using testing::HasSubstr;

run::RunStatus two_groups() {
  run::RunStatus status{.time = 1.5, .process = 12, .groups = {}};
  status.groups.push_back({.node = "rollout-0",
                           .role = "rollout",
                           .pid = 34,
                           .state = "works",
                           .restarts = 2,
                           .version = 7,
                           .queue = 1,
                           .leased = 16,
                           .waits_for = "generate",
                           .seconds = 0.25});
  status.groups.push_back({.node = "verifier", .role = "verifier", .pid = 0, .state = "lost"});
  return status;
}

TEST(StatusOfGroups, IsReadAsItWasWritten) {
  const Json json = run::to_json(two_groups());
  const auto read = run::status_of(json, "status.json");
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(run::to_json(*read).dump(), json.dump());
  EXPECT_EQ(read->groups[0].version, 7u);
  EXPECT_FALSE(read->groups[1].version);
}

TEST(StatusOfGroups, WithoutAMemberIsRefusedByItsName) {
  for (const char* text :
       {"{}", R"({"time": 1, "process": 2})", R"({"time": 1, "process": 2, "groups": [{}]})",
        R"({"time": "x", "process": 2, "groups": []})", "[]"}) {
    const auto read =
        run::status_of(value_or_throw(parse_json(text, "status.json")), "status.json");
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().what, HasSubstr("status.json"));
  }
}

TEST(StatusOfGroups, IsATableOfOneLineForEach) {
  EXPECT_EQ(run::status_table(two_groups()),
            "NODE       ROLE      PID  STATE  VERSION  QUEUE  LEASED  RESTARTS  WAITS FOR\n"
            "rollout-0  rollout   34   works  7        1      16      2         generate, 0.25 s\n"
            "verifier   verifier  0    lost   -        0      -       0         -\n");
}

TEST(StatusOfGroups, IsReplacedAgainAndAgain) {
  const std::string folder = scratch_folder();
  actors::ThreadScheduler scheduler;
  std::atomic<int> gathered = 0;
  EXPECT_FALSE(value_or_throw(run::read_status(folder)));
  {
    const cluster::StatusWriter writer(
        value_or_throw(OutputFolder::open(folder)), scheduler.executor("control"),
        [&] {
          auto status = two_groups();
          status.process = ++gathered;
          return status;
        },
        std::chrono::milliseconds(1));
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (gathered < 5 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  }
  const auto read = value_or_throw(run::read_status(folder));
  ASSERT_TRUE(read);
  EXPECT_GE(read->process, 4);
  EXPECT_EQ(read->groups.size(), 2u);
}

}  // namespace
}  // namespace troupe::launch::group_status_test
