// Grids of the policy: threads of one process and ranks of mpirun write the same bytes; the losses
// are those of one rank.
#include <cmath>
#include <cstdlib>

#include "engine/base/text.h"
#include "tests/system/child.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

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
  // OpenMPI does not free its memory at exit, which AddressSanitizer reports as leaks.
  const auto ranks =
      cat("env ASAN_OPTIONS=detect_leaks=0 mpirun --allow-run-as-root --oversubscribe -n ", dp * tp,
          ' ');
  Child mpirun(ranks + command(run_of("mpi", dp, tp)), log());
  ASSERT_EQ(mpirun.wait(), 0) << "see " << log();
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
