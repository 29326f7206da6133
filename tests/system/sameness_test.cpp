// Threads, the size of micro-batches and the time of reference scoring do not change results.
#include "engine/base/text/text.h"
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

TEST_P(Same, TensorsAndMetricsWithSmallMicroBatchesAndLarge) {
  run(run_of("small", "--set train.micro_batch_tokens=1"));
  run(run_of("large", "--set train.micro_batch_tokens=65536"));
  expect_same_tensors("small", "large");
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
