// Context parallelism: threads of one process and ranks of mpirun write the same bytes, and losses
// are those of one rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "engine/base/text/text.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

class Contexts : public SystemRuns {
 protected:
  std::string run_of(const char* algorithm, const std::string& output,
                     const std::string& grid) const {
    return arguments(algorithm, output,
                     cat("--set train.steps=7 --set train.save_every=7 --set train.threads=1 "
                         "--set train.micro_batch_tokens=256 ",
                         grid));
  }
  void expect_near(const std::string& output, const std::string& one) const {
    const auto found = losses(output), expected = losses(one);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], 4e-6 * std::max(1.0, std::abs(expected[i])))
          << output << ", step " << i + 1;
  }
};

struct ContextRun {
  const char *algorithm, *name, *grid;
};

TEST_F(Contexts, EveryKindOfMethodHasTheLossesOfOneRank) {
  for (const char* algorithm : {"sft", "dpo", "grpo"})
    run(run_of(algorithm, cat("one-", algorithm), ""));
  const ContextRun runs[] = {
      {"sft", "hybrid",
       "--set parallel.cp=4 --set parallel.cp_algorithm=hybrid --set parallel.ulysses_degree=2"},
      {"sft", "inner", "--set parallel.cp=4 --set parallel.cp_window=2"},
      {"sft", "all",
       "--set parallel.cp=2 --set parallel.tp=2 --set parallel.pp=2 --set parallel.sp=true"},
      {"dpo", "ulysses", "--set parallel.cp=2 --set parallel.cp_algorithm=ulysses"},
      {"grpo", "ring", "--set parallel.cp=2"}};
  for (const auto& [algorithm, name, grid] : runs) {
    run(run_of(algorithm, name, grid));
    expect_near(name, cat("one-", algorithm));
  }
}

TEST_F(Contexts, ThreadsAndMpirunWriteTheSameBytes) {
  if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "mpirun is not installed";
  const std::string grid =
      "--set parallel.cp=4 --set parallel.cp_algorithm=hybrid --set parallel.ulysses_degree=2 "
      "--set parallel.zero=1";
  run(run_of("sft", "threads", grid));
  run_under_mpirun(4, run_of("sft", "mpi", grid));
  expect_same_bytes("threads", "mpi");
}

}  // namespace
}  // namespace troupe::test
