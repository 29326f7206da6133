// A full disk: files that only describe a run are given up; for the others the run waits, and ends.
#include <gmock/gmock.h>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/support/sanitized.h"
#include "tests/system/disturbed_runs.h"

namespace troupe::test {
namespace {

using testing::HasSubstr, testing::Not;

struct FullFile {
  const char* name;
  bool ends_the_run;
};

class RunOnFullDisk : public DisturbedRuns {
 protected:
  void SetUp() override {
    if (sanitized) GTEST_SKIP() << "the runtime of a sanitizer must be loaded first";
  }
  /// The exit code of a run that waits for `seconds`, and what it said.
  std::pair<int, std::string> run_on_full_disk(const std::string& settings,
                                               const std::string& seconds) const {
    return on_full_disk(settings,
                        cat(run_of("ppo", "full"), " --set recovery.disk_wait=", seconds));
  }
  std::pair<int, std::string> on_full_disk(const std::string& settings,
                                           const std::string& arguments) const {
    const std::string line =
        cat(recorder(settings), command(arguments), " >'", log(), "' 2>&1 </dev/null");
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, value_or_throw(read_file(log()))};
  }
};
class FullDisk : public RunOnFullDisk, public testing::WithParamInterface<FullFile> {};
class SpaceIsMade : public FullDisk {};

std::string full_file_name(const testing::TestParamInfo<FullFile>& each) {
  std::string name = each.param.name;
  std::erase_if(name, [](char c) { return c == '.' || c == '-'; });
  return name;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST_P(FullDisk, EndsARunOnlyWhereResultsAreWritten) {
  const auto& [name, ends_the_run] = GetParam();
  run(run_of("ppo", "whole"));
  const auto [code, said] = run_on_full_disk(cat("FILE_RECORDER_FULL=", name), "0.2");
  EXPECT_EQ(code, ends_the_run ? 7 : 0) << said;
  EXPECT_EQ(count(said, "cannot write: No space left on device"), 1u) << said;
  EXPECT_THAT(said, HasSubstr(cat("/", name)));
  if (!ends_the_run) {
    EXPECT_THAT(said, HasSubstr("the run continues without this file"));
  }
  run(run_of("ppo", "full"));  // with space again
  expect_same_bytes("whole", "full");
}

INSTANTIATE_TEST_SUITE_P(
    Files, FullDisk,
    testing::Values(FullFile{"timeline.jsonl", false}, FullFile{"timeline.svg", false},
                    FullFile{"timings.jsonl", false}, FullFile{"samples.txt", false},
                    FullFile{"plot.svg", false}, FullFile{"events.out.tfevents", false},
                    FullFile{"metrics.jsonl", true}, FullFile{"samples.jsonl", true},
                    FullFile{"config.yaml", true}, FullFile{"000001.seg", true},
                    FullFile{"model.safetensors", true}),
    full_file_name);

TEST_P(SpaceIsMade, TheRunContinuesWithTheSameBytes) {
  run(run_of("ppo", "whole"));
  const auto [code, said] =
      run_on_full_disk(cat("FILE_RECORDER_FREE=3 FILE_RECORDER_FULL=", GetParam().name), "60");
  EXPECT_EQ(code, 0) << said;
  EXPECT_EQ(count(said, "the disk is full; the run waits up to 60 s (recovery.disk_wait)"), 1u);
  EXPECT_EQ(count(said, "s for space on the disk"), 1u) << said;
  expect_same_bytes("whole", "full");
  const launch::ProgramOutput audit = launch::run_program(cat("audit '", path("full"), "'"));
  EXPECT_EQ(audit.code, 0) << audit.out;
}

TEST_F(RunOnFullDisk, AfterTheWaitTheRunEndsWhereTheLedgerCannotBeWritten) {
  const auto [code, said] = run_on_full_disk("FILE_RECORDER_FULL=ledger.db-wal", "0.5");
  EXPECT_EQ(code, 7) << said;
  EXPECT_THAT(said, HasSubstr("ledger.db: "));
  EXPECT_THAT(said, HasSubstr("disk is full"));
  run(run_of("ppo", "full"));  // with space again
  run(run_of("ppo", "whole"));
  expect_same_bytes("whole", "full");
}

// The controller waits for metrics.jsonl and the policy for model.safetensors, each twice as long
// as a silent group is waited for: heartbeats are sent and read by other threads.
TEST_F(RunOnFullDisk, NoGroupIsLostWhileOneWaits) {
  run(run_of("grpo", "whole"));
  value_or_throw(write_file_durably(path("cluster.yaml"),
                                    "groups: [{role: policy}, {role: reference}, {role: rollout, "
                                    "count: 2}, {role: verifier}]"));
  const auto [code, said] = on_full_disk("FILE_RECORDER_FREE=40 FILE_RECORDER_FULL=m",
                                         cat("launch --cluster '", path("cluster.yaml"), "' -- ",
                                             run_of("grpo", "full"), " --set recovery.silence=2"));
  EXPECT_EQ(code, 0) << said;
  EXPECT_THAT(said, HasSubstr("/metrics.jsonl: waited "));
  EXPECT_THAT(said, HasSubstr("/model.safetensors: waited "));
  EXPECT_THAT(said, Not(HasSubstr("was lost")));
  expect_same_bytes("whole", "full");
}

INSTANTIATE_TEST_SUITE_P(
    Files, SpaceIsMade,
    testing::Values(FullFile{"metrics.jsonl", true}, FullFile{"samples.jsonl", true},
                    FullFile{"ledger.db-wal", true}, FullFile{"000001.seg", true},
                    FullFile{"model.safetensors", true}, FullFile{"optimizer.safetensors", true}),
    full_file_name);

}  // namespace
}  // namespace troupe::test
