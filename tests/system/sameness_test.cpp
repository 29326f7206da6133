// Threads, the size of micro-batches and the time of reference scoring do not change results.
#include <cmath>

#include "engine/base/text.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

class Same : public SystemRuns, public testing::WithParamInterface<const char*> {
 protected:
  std::string run_of(const std::string& output, const std::string& more) const {
    return arguments(GetParam(), output,
                     cat("--set train.steps=8 --set train.save_every=0 ", more));
  }
};

TEST_P(Same, BytesWithOneThreadAndTwo) {
  run(run_of("one", "--set train.threads=1"));
  run(run_of("two", "--set train.threads=2"));
  expect_same_bytes("one", "two");
}

TEST_P(Same, LossesWithSmallMicroBatchesAndLarge) {
  run(run_of("small", "--set train.micro_batch_tokens=1"));
  run(run_of("large", "--set train.micro_batch_tokens=65536"));
  const auto small = losses("small"), large = losses("large");
  ASSERT_EQ(small.size(), 8u);
  EXPECT_NEAR(small[0], large[0], 1e-6 * std::abs(large[0]) + 1e-9);
  // Later steps depend on gradients that were summed in a different order.
  for (std::size_t i = 1; i < 8; ++i)
    EXPECT_NEAR(small[i], large[i], 1e-5 * std::abs(large[i]) + 1e-8) << "step " << i + 1;
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Same,
                         testing::Values("sft", "dpo", "simpo", "cpo", "orpo", "kto", "grpo",
                                         "ppo"),
                         [](const auto& each) { return each.param; });

TEST_F(SystemRuns, AReferenceThatWasAskedBeforehandGivesTheSameBytes) {
  const auto dpo = [&](const char* output, const char* precompute) {
    return arguments(
        "dpo", output,
        cat("--set train.steps=12 --set train.save_every=0 --set dpo.precompute_reference=",
            precompute));
  };
  run(dpo("asked", "false"));
  run(dpo("known", "true"));
  expect_same_bytes("asked", "known");
}

}  // namespace
}  // namespace troupe::test
