// Saved tensors: those released, and those recomputed in the backward pass.
#include "engine/nn/saved.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "engine/ops/cpu/cpu_options.h"
#include "engine/ops/device.h"

namespace troupe::engine::nn {
namespace {

TEST(SavedTensors, WhatIsForgottenIsAbsentUntilItIsRestored) {
  const auto device = ops::make_reference_device();
  const Tensor a = device->empty({2}), b = device->empty({3});
  Saved saved;
  saved.push(a);
  const auto mark = saved.mark();
  saved.push(b);
  saved.push(a);
  saved.push(b);
  saved.forget(mark, b);
  EXPECT_EQ(saved.bytes(), a.bytes());
  int calls = 0;
  saved.restore([&] {
    ++calls;
    return b;
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(saved.pop().buffer(), b.buffer());
  EXPECT_EQ(saved.pop().buffer(), a.buffer());
  saved.forget(saved.mark(), b);
  EXPECT_FALSE(saved.empty());
  saved.restore([&] {
    ++calls;
    return b;
  });
  EXPECT_EQ(calls, 1);  // it lay nowhere
  EXPECT_THROW(saved.restore([&] { return b; }), std::logic_error);
}

TEST(SavedTensors, WhatIsMadeWhenItIsPoppedIsMadeThen) {
  const auto device = ops::make_reference_device();
  const Tensor a = device->empty({2}), b = device->empty({3});
  Saved saved;
  saved.push(b);
  saved.push(a);
  saved.forget(0, b);
  int calls = 0;
  saved.restore_when_popped([&] {
    ++calls;
    return b;
  });
  EXPECT_EQ(saved.pop().buffer(), a.buffer());
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(saved.pop().buffer(), b.buffer());
  EXPECT_EQ(calls, 1);
  saved.push(a);
  saved.forget(0, b);  // it lies nowhere
  saved.restore_when_popped([&] {
    ++calls;
    return b;
  });
  EXPECT_EQ(saved.pop().buffer(), a.buffer());
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(saved.empty());
  saved.push(b);
  saved.push(b);
  saved.forget(0, b);
  EXPECT_THROW(saved.restore_when_popped([&] { return b; }), std::logic_error) << "at two places";
}

TEST(SavedTensors, AForwardPassIsRepeatedOnceInAdvanceOrOnDemand) {
  const auto device = ops::make_reference_device();
  const Tensor first = device->empty({2}), second = device->empty({3}), after = device->empty({4});
  Saved saved;
  saved.push_input(first);
  saved.push_input(second);
  saved.push(after);
  std::vector<Tensor> inputs;
  const auto run = [&](const Tensor& x, Saved& into) {
    inputs.push_back(x);
    into.push(x);
  };
  saved.repeat_in_advance(run);
  saved.repeat_in_advance(run);
  ASSERT_EQ(inputs.size(), 1u);
  EXPECT_EQ(inputs[0].buffer(), second.buffer());
  EXPECT_THROW(saved.repeated(run), std::logic_error) << "of layers below the last ones";
  saved.pop();
  EXPECT_EQ(saved.repeated(run).pop().buffer(), second.buffer());
  EXPECT_EQ(inputs.size(), 1u);
  EXPECT_EQ(saved.repeated(run).pop().buffer(), first.buffer());
  EXPECT_EQ(inputs.size(), 2u);
  EXPECT_TRUE(saved.empty());
  saved.repeat_in_advance(run);
  EXPECT_EQ(inputs.size(), 2u) << "there is no input";
}

}  // namespace
}  // namespace troupe::engine::nn
