// Signals of terminals, service managers and batch systems end a run after a checkpoint, in every
// placement.
#include <gmock/gmock.h>
#include <signal.h>

#include <array>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/system/child.h"
#include "tests/system/processes.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

using testing::HasSubstr;

struct Signal {
  const char* name;
  int number;
};
void PrintTo(const Signal& signal, std::ostream* out) {
  *out << signal.name;
}
constexpr std::array<Signal, 4> signals{
    {{"SIGTERM", SIGTERM}, {"SIGHUP", SIGHUP}, {"SIGUSR1", SIGUSR1}, {"SIGUSR2", SIGUSR2}}};

class Placed : public SystemRuns {
 protected:
  std::string sft(const std::string& output) const {
    return arguments("sft", output, "--set train.steps=100000 --set train.save_every=0");
  }
  std::string text(const std::string& name) const { return read_file(path(name)).value_or(""); }
  void expect_saved(const std::string& output) const {
    EXPECT_EQ(std::filesystem::read_symlink(path(output + "/latest")),
              cat("checkpoint-", steps_written(output)));
  }
};
class Signals : public Placed, public testing::WithParamInterface<Signal> {};

TEST_P(Signals, EndARunAfterACheckpoint) {
  Child child(command(sft("a")), log());
  ASSERT_TRUE(child.until([&] { return steps_written("a") >= 2; })) << text("log");
  child.signal(GetParam().number);
  EXPECT_EQ(child.wait(), 130) << text("log");
  expect_saved("a");
  EXPECT_THAT(text("log"), HasSubstr("Interrupted: finishing this step and saving a checkpoint. "
                                     "Press Ctrl-C again to quit immediately."));
  EXPECT_THAT(text("a/logs/train.log"), HasSubstr(cat(" I interrupted by ", GetParam().name,
                                                      "; run the same command again to resume\n")));
}

TEST_P(Signals, ThatAreIgnoredAtTheStartStayIgnored) {
  Child child(
      cat("env -u X bash -c \"trap '' ", GetParam().name + 3, "; exec ", command(sft("a")), "\""),
      log());
  ASSERT_TRUE(child.until([&] { return steps_written("a") >= 1; })) << text("log");
  child.signal(GetParam().number);
  const std::size_t before = steps_written("a");
  EXPECT_TRUE(child.until([&] { return steps_written("a") >= before + 5; }));
  child.signal(SIGINT);
  EXPECT_EQ(child.wait(), 130);
  EXPECT_THAT(text("a/logs/train.log"), HasSubstr("interrupted by SIGINT"));
}

TEST_P(Signals, EndALaunchAfterACheckpointAlsoIfEveryProcessReceivesThem) {
  value_or_throw(write_file_durably(path("cluster.yaml"),
                                    "groups: [{role: policy}, {role: rollout}, {role: verifier}]"));
  const std::string mark = cat("TROUPE_TEST_MARK=", path("mark"));
  Child child(cat("env ", mark, " ",
                  command(cat("launch --cluster '", path("cluster.yaml"), "' -- ",
                              arguments("grpo", "a",
                                        "--set train.steps=100000 --set train.save_every=0 "
                                        "--set grpo.beta=0")))),
              log());
  ASSERT_TRUE(child.until([&] { return steps_written("a") >= 2; })) << text("log");
  // A closed terminal or a batch system may signal the groups, too. SIGTERM is how launch ends
  // them.
  if (GetParam().number != SIGTERM)
    for (const Process& each : processes_with(mark))
      if (each.command.find(" worker") != std::string::npos) kill(each.pid, GetParam().number);
  child.signal(GetParam().number);
  EXPECT_EQ(child.wait(), 130) << text("log");
  expect_saved("a");
  EXPECT_THAT(text("a/logs/controller.log"), HasSubstr(cat("interrupted by ", GetParam().name)));
}

TEST_P(Signals, ThatMpirunForwardsEndItsRun) {
  if (GetParam().number != SIGUSR1 && GetParam().number != SIGUSR2)
    GTEST_SKIP() << "mpirun forwards SIGUSR1 and SIGUSR2; the others end it";
  if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "mpirun is not installed";
  Child child(
      cat("env ASAN_OPTIONS=detect_leaks=0 mpirun --allow-run-as-root --oversubscribe -n 2 ",
          command(cat(sft("a"), " --set parallel.dp=2"))),
      log());
  ASSERT_TRUE(child.until([&] { return steps_written("a") >= 2; })) << text("log");
  child.signal(GetParam().number);
  EXPECT_EQ(child.wait(), 130) << text("log");
  expect_saved("a");
}

INSTANTIATE_TEST_SUITE_P(All, Signals, testing::ValuesIn(signals),
                         [](const auto& each) { return std::string(each.param.name); });

using RefusedGrids = Placed;

TEST_F(RefusedGrids, ThatDoNotFitTheModelAreRefusedBeforeAnythingStarts) {
  const std::string reason =
      "tensor parallelism of 5 is not possible for this model of 8 heads, 4 key/value heads";
  value_or_throw(
      write_file_durably(path("cluster.yaml"), "groups: [{role: policy, parallel: {tp: 5}}]"));
  const launch::ProgramOutput launched =
      launch::run_program(cat("launch --cluster '", path("cluster.yaml"), "' -- ", sft("a")));
  EXPECT_EQ(launched.code, 2) << launched.err;
  EXPECT_THAT(launched.err, HasSubstr(cat("troupe: policy: ", reason)));
  EXPECT_FALSE(std::filesystem::exists(path("a/logs/policy.log"))) << "nothing was started";
  const launch::ProgramOutput alone = launch::run_program(sft("a") + " --set parallel.tp=5");
  EXPECT_EQ(alone.code, 2);
  EXPECT_THAT(alone.err, HasSubstr(cat("troupe: ", reason)));
}

TEST_F(RefusedGrids, ThatDoNotFitAreReportedOnceByEveryMpirun) {
  if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "mpirun is not installed";
  for (int round = 0; round < 5; ++round) {
    const std::string name = cat("log", round);
    Child child(cat("env ASAN_OPTIONS=detect_leaks=0 mpirun --allow-run-as-root --oversubscribe "
                    "-n 5 ",
                    command(sft("a") + " --set parallel.tp=5")),
                path(name));
    EXPECT_EQ(child.wait(), 2);
    const std::string said = text(name), reason = "troupe: tensor parallelism of 5 is not possible";
    EXPECT_THAT(said, HasSubstr(reason));
    EXPECT_EQ(said.find(reason), said.rfind(reason)) << said;
  }
}

TEST_F(RefusedGrids, OfAnotherSizeThanMpirunAreReportedOnce) {
  if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "mpirun is not installed";
  Child child(
      cat("env ASAN_OPTIONS=detect_leaks=0 mpirun --allow-run-as-root --oversubscribe -n 3 ",
          command(sft("a") + " --set parallel.dp=2")),
      log());
  EXPECT_EQ(child.wait(), 2);
  const std::string said = text("log"), reason = "troupe: parallel: dp 2 x tp 1 does not match";
  EXPECT_THAT(said, HasSubstr(reason));
  EXPECT_EQ(said.find(reason), said.rfind(reason)) << said;
}

}  // namespace
}  // namespace troupe::test
