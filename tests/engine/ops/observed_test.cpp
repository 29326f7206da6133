// The observed device: every call is forwarded to the function of the same name, gives the same
// bits, and is shown with what it has computed.
#include "engine/ops/observed_device.h"

#include <gmock/gmock.h>

#include <set>

#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/ops/every_result.h"

namespace troupe::engine::ops {
namespace {

class ShownCalls final : public CallObserver {
 public:
  void computed(const ObservedCall& call, Device& device) override {
    names.insert(std::string(call.op));
    if (!changes) return;
    for (Tensor* output : call.outputs)
      device.upload(*output, std::vector<float>(static_cast<std::size_t>(output->count()), 0.5F));
  }

  std::set<std::string> names;
  bool changes = false;
};

using Observed = OnEveryDevice;

TEST_P(Observed, TheResultsOfEveryOperationAreTheSameBits) {
  ShownCalls shown;
  const auto observed = make_observed_device(make(GetParam()), shown);
  const auto expected = every_result(device()), found = every_result(*observed);
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, values] : expected)
    EXPECT_TRUE(same_bits(found.at(name), values)) << name;
  const Tensor z = from_host(*observed, {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  Tensor logp = observed->empty({2}), lse = observed->empty({2}), rows = observed->empty({2, 3});
  const Rows ids = {1, 0};
  observed->token_logprob(z, observed->indices(ids), 1, logp, lse);
  observed->scatter_rows(z, observed->indices(ids), rows);
  EXPECT_EQ(to_host(*observed, rows), (Floats{4, 5, 6, 1, 2, 3}));
  for (const char* name : {"gemm", "attention", "head", "rope", "rms_norm", "layer_norm", "gated",
                           "activate", "token_logprob", "scatter_rows"})
    EXPECT_TRUE(shown.names.contains(name)) << name;
  EXPECT_FALSE(shown.names.contains("adamw"));
}

INSTANTIATE_TEST_SUITE_P(Devices, Observed, testing::ValuesIn(device_cases()), case_name);

TEST(ObservedDevice, AnObserverCanChangeWhatWasComputed) {
  ShownCalls shown;
  shown.changes = true;
  const auto device = make_observed_device(make_cpu_device({.threads = 1}), shown);
  const Tensor a = from_host(*device, {2, 2}, std::vector<float>{1, 2, 3, 4});
  Tensor sum = device->empty({2, 2});
  device->add(a, a, sum);
  EXPECT_THAT(to_host(*device, sum), testing::Each(0.5F));
}

}  // namespace
}  // namespace troupe::engine::ops
