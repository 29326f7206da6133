// Weights between the processes of a cluster: the same bits in shared memory and through sockets,
// in every format and in parts of every size.
#include <gmock/gmock.h>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

using testing::HasSubstr;

class WeightTransfer : public SystemRuns {
 protected:
  static std::string settings(const std::string& dtype) {
    return cat("--set train.steps=3 --set train.dtype=", dtype, ' ');
  }
  std::string launched(const std::string& output, const std::string& more,
                       const std::string& rollout = "role: rollout, count: 2") const {
    value_or_throw(write_file_durably(
        path("cluster.yaml"),
        cat("groups: [{role: policy}, {role: reference}, {", rollout, "}, {role: verifier}]")));
    return cat("launch --cluster '", path("cluster.yaml"), "' -- ",
               arguments("grpo", output, more));
  }
};

TEST_F(WeightTransfer, HasTheBitsOfOneProcessInEveryFormat) {
  const std::string sockets = "--set weights.shared_memory=off --set weights.chunk_mib=1 ";
  for (const std::string dtype : {"f32", "bf16"}) {
    run(arguments("grpo", "one-" + dtype, settings(dtype)));
    for (const std::string format : {"f32", "bf16", "delta"}) {
      if (format == "bf16" && dtype == "f32") continue;
      const std::string output = cat(format, "-", dtype);
      run(launched(output, settings(dtype) + sockets + "--set weights.format=" + format));
      expect_same_tensors("one-" + dtype, output);
    }
  }
}

TEST_F(WeightTransfer, HasTheSameBitsInSharedMemoryAndInPartsOfEverySize) {
  run(arguments("grpo", "one", settings("f32")));
  run(launched("shared", settings("f32")));
  run(launched("small", settings("f32") + "--set weights.shared_memory=off "
                                          "--set weights.chunk_mib=1"));
  run(launched("large", settings("f32") + "--set weights.shared_memory=off"));
  for (const char* output : {"shared", "small", "large"}) expect_same_tensors("one", output);
}

TEST_F(WeightTransfer, OfAnAsynchronousRunHasTheBitsOfOneProcess) {
  const std::string pinned =
      settings("bf16") + "--set async.mode=pinned --set async.eta=1 --set train.schedule=constant ";
  run(arguments("grpo", "one", pinned));
  run(launched("shared", pinned));
  run(launched("delta", pinned + "--set weights.shared_memory=off --set weights.format=delta"));
  for (const char* output : {"shared", "delta"}) expect_same_tensors("one", output);
}

TEST_F(WeightTransfer, ReportsFormatsThatWouldChangeResults) {
  const auto f32 =
      launch::run_program(arguments("grpo", "a", settings("f32") + "--set weights.format=bf16"));
  EXPECT_EQ(f32.code, 2);
  EXPECT_THAT(f32.err, HasSubstr("would change their samples"));
  const auto int8 =
      launch::run_program(arguments("grpo", "a",
                                    settings("bf16") + "--set weights.format=bf16 --set "
                                                       "rollout.weights=int8"));
  EXPECT_EQ(int8.code, 2);
  EXPECT_THAT(int8.err, HasSubstr("is made of the f32 weights"));
}

}  // namespace
}  // namespace troupe::test
