// Asynchronous runs of the program: the bits do not depend on lanes, processes, rollouts or kills.
#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/manifest.h"
#include "tests/system/child.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

using testing::HasSubstr;

class Async : public SystemRuns {
 protected:
  static std::string settings(int eta, int steps = 8) {
    return cat("--set async.mode=pinned --set async.eta=", eta,
               " --set train.schedule=constant --set train.save_every=2 --set train.keep_last=0 "
               "--set train.steps=",
               steps, ' ');
  }
  std::string alone(const std::string& output, const std::string& more) const {
    return arguments("grpo", output, more);
  }
  std::string launched(const std::string& output, const std::string& more, int rollouts) const {
    value_or_throw(write_file_durably(
        path("cluster.yaml"), cat("groups: [{role: policy}, {role: reference}, {role: rollout, "
                                  "count: ",
                                  rollouts, "}, {role: verifier}]")));
    return cat("launch --cluster '", path("cluster.yaml"), "' -- ",
               arguments("grpo", output, more));
  }
  std::string text(const std::string& file) const { return read_file(path(file)).value_or(""); }
  /// Moves a file of a checkpoint to where version 0.1.0 wrote it, with a manifest without it.
  void make_010(const std::string& output, std::int64_t step, const std::string& file) const {
    const std::string checkpoint = path(cat(output, "/checkpoint-", step));
    const std::string folder = path(cat(output, "/versions/checkpoint-", step));
    std::filesystem::create_directories(folder);
    std::filesystem::rename(cat(checkpoint, "/training/", file), cat(folder, "/", file));
    const auto manifest = engine::checkpoint::measure_checkpoint(checkpoint, step);
    value_or_throw(write_file_durably(cat(checkpoint, "/", engine::checkpoint::manifest_file),
                                      engine::checkpoint::to_text(value_or_throw(manifest))));
  }
};

TEST_F(Async, HasTheSameBitsOnOneLaneOnTwoAndInACluster) {
  run(alone("one", settings(1)));
  run(alone("two", settings(1) + "--set rollout.threads=1 --set train.threads=1"));
  expect_same_bytes("one", "two");
  for (const int rollouts : {1, 2}) {
    run(launched(cat("cluster", rollouts), settings(1), rollouts));
    expect_same_bytes("one", cat("cluster", rollouts));
  }
  EXPECT_THAT(text("one/metrics.jsonl"), HasSubstr("\"staleness/max\":1"));
}

TEST_F(Async, UnderMpirunRolloutsOfTheirOwnThreadsHaveTheBitsOfOneProcess) {
  if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "mpirun is not installed";
  const std::string two_ranks = settings(1) + "--set parallel.dp=2 --set train.threads=1 ";
  run(alone("turns", two_ranks));
  run_under_mpirun(2, alone("mpi", two_ranks + "--set rollout.threads=1"));
  expect_same_bytes("turns", "mpi");
}

TEST_F(Async, WithEta0HasTheWeightsOfTheSynchronousRun) {
  run(alone("off", settings(0) + "--set async.mode=off"));
  run(alone("pinned", settings(0) + "--set rollout.threads=1"));
  const auto weights = text("off/checkpoint-8/model.safetensors");
  EXPECT_FALSE(weights.empty());
  EXPECT_TRUE(weights == text("pinned/checkpoint-8/model.safetensors"));
}

TEST_F(Async, OfPpoHasTheSameBitsOnOneLaneAndOnTwo) {
  run(arguments("ppo", "one", settings(1)));
  run(arguments("ppo", "two", settings(1) + "--set rollout.threads=1 --set train.threads=1"));
  expect_same_bytes("one", "two");
}

TEST_F(Async, AKilledRunResumesToTheSameBits) {
  const std::string own_lane = settings(2) + "--set rollout.threads=1 --set train.threads=1";
  run(alone("whole", own_lane));
  const std::string parts = alone("killed", own_lane);
  for (std::size_t steps = 1; steps < 8; steps += 2) {
    Child child(command(parts), log());
    ASSERT_TRUE(child.until([&] { return steps_written("killed") >= steps; }));
    child.signal(SIGKILL);
    child.wait();
  }
  run(parts);
  expect_same_bytes("whole", "killed");
}

TEST_F(Async, ALongerRunResumesToTheSameBits) {
  run(alone("whole", settings(2)));
  run(alone("longer", settings(2, 4)));
  EXPECT_TRUE(std::filesystem::exists(path("longer/checkpoint-4/training/version-1.safetensors")));
  EXPECT_FALSE(std::filesystem::exists(path("longer/versions")));
  run(alone("longer", settings(2)));
  expect_same_bytes("whole", "longer");
}

TEST_F(Async, ADamagedOlderVersionIsNamedAndTheCheckpointBeforeIsUsed) {
  run(alone("whole", settings(1)));
  run(alone("a", settings(1, 4)));
  const std::string file = "a/checkpoint-4/training/version-1.safetensors";
  std::string bytes = text(file);
  ASSERT_GT(bytes.size(), 4096u);
  bytes[bytes.size() - 2048] ^= 0x10;
  value_or_throw(write_file_durably(path(file), bytes));
  const auto report = launch::run_program(cat("info '", path("a"), "'"));
  EXPECT_EQ(report.code, 5) << report.out;
  EXPECT_THAT(report.out + report.err, HasSubstr("checkpoint-4/training/version-1.safetensors"));
  EXPECT_THAT(report.out, HasSubstr("resumes from checkpoint-2"));
  const std::string said = run(alone("a", settings(1)));
  EXPECT_THAT(said, HasSubstr(file));
  EXPECT_THAT(said, HasSubstr("checkpoint-2 instead"));
  expect_same_bytes("whole", "a");
}

TEST_F(Async, AMissingOlderVersionIsDamage) {
  run(alone("whole", settings(1)));
  run(alone("a", settings(1, 4)));
  std::filesystem::remove(path("a/checkpoint-4/training/version-1.safetensors"));
  EXPECT_THAT(run(alone("a", settings(1))), HasSubstr("checkpoint-2 instead"));
  expect_same_bytes("whole", "a");
}

// Files of version 0.1.0 were beside the checkpoint, outside of its manifest: such a checkpoint is
// made from one of now.
TEST_F(Async, VersionsOf010AreReadWithAWarningAndVerified) {
  run(alone("whole", settings(1)));
  for (const bool damaged : {false, true}) {
    const std::string name = damaged ? "damaged" : "old";
    run(alone(name, settings(1, 4)));
    make_010(name, 4, "version-1.safetensors");
    const std::string file = cat(name, "/versions/checkpoint-4/version-1.safetensors");
    std::string bytes = text(file);
    if (damaged) bytes[bytes.size() / 2] ^= 0x10;
    value_or_throw(write_file_durably(path(file), bytes));
    const std::string said = run(alone(name, settings(1)));
    EXPECT_THAT(said, HasSubstr(file));
    EXPECT_THAT(said, HasSubstr(damaged ? "checkpoint-2 instead" : "without a checksum"));
    expect_same_bytes("whole", name);
    EXPECT_EQ(std::filesystem::exists(path(name + "/versions")), !damaged)
        << "removed with the checkpoint, or when it is saved again";
  }
}

TEST_F(Async, ReportsSettingsThatContradictEachOther) {
  const auto small = launch::run_program(alone("a", settings(1) + "--set async.in_flight=1"));
  EXPECT_EQ(small.code, 2);
  EXPECT_THAT(small.err, HasSubstr("none could ever be complete"));
  const auto fixed = launch::run_program(alone("a", settings(1) + "--set async.partial=restart"));
  EXPECT_EQ(fixed.code, 2);
  EXPECT_THAT(fixed.err, HasSubstr("with pinned every sample has one version"));
}

}  // namespace
}  // namespace troupe::test
