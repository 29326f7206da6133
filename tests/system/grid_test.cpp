// Grids of the policy: threads of one process and ranks of mpirun write the same bytes; the losses
// are those of one rank. Grids of the other models: the same.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

using testing::HasSubstr;

// Runs two ranks, as threads and under mpirun.
class TwoRanks : public SystemRuns {
 private:
  // Of a run without `key`, and of one with it as threads. Compares the bytes of mpirun with these.
  std::pair<std::vector<double>, std::vector<double>> losses_without_and_with(
      const std::string& algorithm, const std::string& key, const std::string& more) const {
    run(run_of(algorithm, "plain", more));
    const std::string keys = cat("--set ", key, ' ', more);
    run(run_of(algorithm, "threads", keys));
    auto plain = losses("plain"), threads = losses("threads");
    EXPECT_EQ(plain.size(), 4u);
    EXPECT_EQ(threads.size(), 4u);
    if (std::system("command -v mpirun >/dev/null") == 0) {
      run_under_mpirun(2, run_of(algorithm, "mpi", keys));
      expect_same_bytes("threads", "mpi");
    }
    return {std::move(plain), std::move(threads)};
  }

 protected:
  std::string run_of(const std::string& algorithm, const std::string& output,
                     const std::string& keys) const {
    return arguments(
        algorithm, output,
        cat("--set train.steps=4 --set train.save_every=0 --set parallel.dp=2 ", keys));
  }
  // With `key` the run has the losses of one without it, but for rounding, and mpirun its bytes.
  void expect_parity(const std::string& algorithm, const std::string& key,
                     const std::string& more = "") const {
    const auto [plain, divided] = losses_without_and_with(algorithm, key, more);
    for (std::size_t i = 0; i < plain.size(); ++i)
      EXPECT_NEAR(divided[i], plain[i], (i == 0 ? 2e-6 : 4e-6) * std::max(1.0, std::abs(plain[i])))
          << "step " << i + 1;
    EXPECT_NE(plain, divided) << key << " divided no sum";
  }
  // With `key`, a number of stages, the run has the losses of one without it.
  void expect_same(const std::string& algorithm, const std::string& key,
                   const std::string& more = "") const {
    const auto [plain, divided] = losses_without_and_with(algorithm, key, more);
    EXPECT_EQ(plain, divided) << key;
  }
  std::string refusal(const std::string& keys) const {
    const launch::ProgramOutput said = launch::run_program(run_of("dpo", "refused", keys));
    EXPECT_EQ(said.code, 2) << keys;
    return said.err;
  }
};

TEST_F(TwoRanks, TheReferenceOfDpoIsDividedByTp) {
  expect_parity("dpo", "parallel.reference.tp=2");
}

TEST_F(TwoRanks, TheReferenceOfGrpoIsDividedByTp) {
  expect_parity("grpo", "parallel.reference.tp=2");
}

TEST_F(TwoRanks, TheRewardModelOfGrpoIsDividedByTp) {
  value_or_throw(write_file_durably(path("pairs.jsonl"),
                                    R"({"prompt":"1,2:","chosen":"3","rejected":"1,1"})"
                                    "\n"
                                    R"({"prompt":"3,4:","chosen":"5","rejected":"3,3"})"
                                    "\n"));
  run(cat("train --algorithm orm --set model='", launch::data("models/digit-completion"),
          "' --set data.path='", path("pairs.jsonl"), "' --set output='", path("orm"),
          "' --set train.batch_size=2 --set train.threads=1 --set train.log_every=0 ",
          "--set train.learning_rate=1e-3 --set train.steps=10"));
  expect_parity("grpo", "parallel.reward.tp=2",
                cat("--set 'reward=[{rule: model, path: \"", path("orm/latest"),
                    "\", normalize: given, mean: 0.5, std: 2}]'"));
}

TEST_F(TwoRanks, TheReferenceOfDpoHasPartsOfTheTokens) {
  expect_parity("dpo", "parallel.reference.cp=2");
}

TEST_F(TwoRanks, TheReferenceOfDpoHasStages) {
  expect_same("dpo", "parallel.reference.pp=2 --set parallel.reference.layers=[4,1]");
}

TEST_F(TwoRanks, AReferenceThatFollowsThePolicyIsDividedByTp) {
  expect_parity("dpo", "parallel.reference.tp=2", "--set dpo.sync_every=1");
}

TEST_F(TwoRanks, TheRolloutsOfGrpoAreDividedByTp) {
  expect_parity("grpo", "parallel.rollout.tp=2");
}

TEST_F(TwoRanks, TheRolloutsOfGrpoHaveStages) {
  expect_same("grpo", "parallel.rollout.pp=2");
}

TEST_F(TwoRanks, TheRolloutsOfAnAdapterHaveStages) {
  expect_same("grpo", "parallel.rollout.pp=2", "--set lora.rank=4");
}

TEST_F(TwoRanks, TheCriticOfPpoHasStages) {
  expect_same("ppo", "parallel.critic.pp=2");
}

TEST_F(TwoRanks, GridsThatDoNotFitAreRefused) {
  EXPECT_THAT(refusal("--set parallel.reference.tp=3"),
              HasSubstr("parallel.reference.tp = 3: the run has 2 ranks (parallel.*), which groups "
                        "of 3 do not fill; allowed: 1, 2"));
  EXPECT_THAT(refusal("--set parallel.reference.tp=2 --set parallel.reference.pp=2"),
              HasSubstr("parallel.reference.tp = 2 x parallel.reference.pp = 2: the run has 2 "
                        "ranks (parallel.*), which groups of 4 do not fill; allowed: 1, 2"));
  EXPECT_THAT(refusal("--set parallel.reference.dp=3"),
              HasSubstr("parallel.reference.dp = 3: the model has 2 replicas, the 2 ranks of the "
                        "run (parallel.*) in groups of 1; allowed: 0, 2"));
  EXPECT_THAT(refusal("--set parallel.reference.pp=2 --set parallel.reference.layers=[9,1]"),
              HasSubstr("parallel.reference.pp = 2: parallel.reference.layers: expected 1 to 5 "
                        "layers on each stage, found 9"));
}

TEST_F(TwoRanks, ExplainCountsTheShareOfAReference) {
  std::string arguments = run_of("dpo", "explained", "--set parallel.reference.tp=2");
  arguments.replace(0, 5, "explain");
  const launch::ProgramOutput said = launch::run_program(arguments);
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out,
              testing::ContainsRegex("reference model, [0-9.]+ [KM]iB on each of 2 ranks"));
  EXPECT_THAT(said.out, HasSubstr("\n  parallel.reference.tp "));
  EXPECT_THAT(said.out, testing::Not(HasSubstr("parallel.critic."))) << "none of its keys is given";
}

using Case = std::tuple<const char*, std::pair<int, int>>;  // algorithm, dp and tp

class Grids : public SystemRuns, public testing::WithParamInterface<Case> {
 protected:
  static bool mpirun_is_there() { return std::system("command -v mpirun >/dev/null") == 0; }

  std::string run_of(const std::string& output, int dp, int tp) const {
    return arguments(
        std::get<0>(GetParam()), output,
        cat("--set train.steps=4 --set train.save_every=0 --set train.threads=1 --set parallel.dp=",
            dp, " --set parallel.tp=", tp));
  }
};

TEST_P(Grids, ThreadsAndMpirunWriteTheSameBytesAndOneRanksLosses) {
  const auto [dp, tp] = std::get<1>(GetParam());
  run(run_of("one", 1, 1));
  run(run_of("threads", dp, tp));
  const auto one = losses("one"), threads = losses("threads");
  ASSERT_EQ(one.size(), 4u);
  ASSERT_EQ(threads.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(threads[i], one[i], 2e-6 * std::max(1.0, std::abs(one[i]))) << "step " << i + 1;
  if (!mpirun_is_there()) GTEST_SKIP() << "mpirun is not installed";
  run_under_mpirun(dp * tp, run_of("mpi", dp, tp));
  expect_same_bytes("threads", "mpi");
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const auto& [algorithm, grid] = info.param;
  return cat(algorithm, "_dp", grid.first, "_tp", grid.second);
}

INSTANTIATE_TEST_SUITE_P(All, Grids,
                         testing::Combine(testing::Values("sft", "dpo", "grpo"),
                                          testing::Values(std::pair{1, 2}, std::pair{1, 4},
                                                          std::pair{2, 1}, std::pair{4, 1},
                                                          std::pair{2, 2}, std::pair{2, 4})),
                         name_of);

}  // namespace
}  // namespace troupe::test
