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

}  // namespace
}  // namespace troupe::engine::nn
