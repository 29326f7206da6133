// parallel.zero divides the optimizer state over the data-parallel ranks. The checkpoints and the
// metrics are those of a run that does not divide it, as threads and under mpirun.
#include <cstdlib>
#include <filesystem>

#include "engine/base/text/text.h"
#include "tests/system/child.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

class Zero : public SystemRuns {
 protected:
  std::string run_of(const std::string& output, int dp, int tp, int zero,
                     const std::string& more = "") const {
    return arguments("sft", output,
                     cat("--set train.steps=4 --set train.save_every=2 --set train.threads=1 "
                         "--set parallel.dp=",
                         dp, " --set parallel.tp=", tp, " --set parallel.zero=", zero, ' ', more));
  }
};

TEST_F(Zero, HasTheBytesOfAnUndividedOptimizerAsThreads) {
  for (const auto& [dp, tp] : {std::pair{2, 1}, std::pair{4, 1}, std::pair{2, 2}}) {
    SCOPED_TRACE(cat("dp ", dp, ", tp ", tp));
    const std::string whole = cat("whole-", dp, '-', tp), divided = cat("divided-", dp, '-', tp);
    run(run_of(whole, dp, tp, 0));
    run(run_of(divided, dp, tp, 1));
    expect_same_bytes(whole, divided);
  }
}

TEST_F(Zero, HasTheBytesOfAnUndividedOptimizerUnderMpirun) {
  if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "mpirun is not installed";
  for (const auto& [dp, tp] : {std::pair{3, 1}, std::pair{2, 2}}) {
    SCOPED_TRACE(cat("dp ", dp, ", tp ", tp));
    const std::string whole = cat("whole-", dp, '-', tp), divided = cat("divided-", dp, '-', tp);
    run(run_of(whole, dp, tp, 0));
    // OpenMPI does not free its memory at exit, which AddressSanitizer reports as leaks.
    const auto ranks =
        cat("env ASAN_OPTIONS=detect_leaks=0 mpirun --allow-run-as-root --oversubscribe -n ",
            dp * tp, ' ');
    Child mpirun(ranks + command(run_of(divided, dp, tp, 1)), log());
    ASSERT_EQ(mpirun.wait(), 0) << "see " << log();
    expect_same_bytes(whole, divided);
  }
}

TEST_F(Zero, AdaptersAndRoundedWeightsHaveTheSameBytes) {
  int number = 0;
  for (const char* more : {"--set lora.rank=4", "--set train.moments=bf16",
                           "--set train.dtype=bf16 --set train.weights=bf16",
                           "--set train.weights=bf16 --set train.gradients=bf16 --set "
                           "train.moments=bf16 --set train.ema_decay=0.9"}) {
    SCOPED_TRACE(more);
    const std::string name = std::to_string(++number);
    run(run_of("whole-" + name, 2, 1, 0, more));
    run(run_of("divided-" + name, 2, 1, 1, more));
    expect_same_bytes("whole-" + name, "divided-" + name);
  }
}

TEST_F(Zero, AResumedRunMayDivideTheStateOrNot) {
  for (const int zero : {0, 1}) {
    const std::string whole = cat("whole-", zero), resumed = cat("resumed-", zero);
    run(run_of(whole, 2, 1, zero));
    std::filesystem::copy(
        path(whole), path(resumed),
        std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
    std::filesystem::remove_all(path(resumed + "/checkpoint-4"));
    run(run_of(resumed, 2, 1, 1 - zero,
               cat("--set resume='", path(resumed + "/checkpoint-2"), "'")));
    expect_same_bytes(whole, resumed);
  }
}

}  // namespace
}  // namespace troupe::test
