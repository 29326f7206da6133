// Tensors without a gradient are reported at the two steps at which they are checked.
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::engine::train {
namespace {

struct Three {
  std::unique_ptr<ops::Device> device = ops::make_cpu_device();
  nn::Parameters parameters{
      *device, {{"used", {2}}, {"idle", {3}}, {"adapter.A", {2}, {}, true, true}}, true};
  Three() { device->upload(parameters.at("used").grad, std::vector<float>{0, 1}); }
};

TEST(ZeroGradients, AreNamed) {
  const Three t;
  EXPECT_THAT(zero_gradient_names(t.parameters), testing::ElementsAre("idle", "adapter.A"));
}

TEST(ZeroGradients, AreWarnedOfAtTheFirstAndTheTenthStep) {
  const Three t;
  EXPECT_EQ(zero_gradient_warning(t.parameters, 1),
            "step 1: 1 tensor has a gradient of exactly 0 and does not learn: idle");
  EXPECT_EQ(zero_gradient_warning(t.parameters, 2), "");
  EXPECT_EQ(zero_gradient_warning(t.parameters, 10),
            "step 10: 2 tensors have a gradient of exactly 0 and do not learn: idle, adapter.A");
}

TEST(ZeroGradients, OfABatchThatTeachesNothingAreNotTheModelsFault) {
  Three t;
  t.device->upload(t.parameters.at("used").grad, std::vector<float>{0, 0});
  EXPECT_EQ(zero_gradient_warning(t.parameters, 1), "");
}

}  // namespace
}  // namespace troupe::engine::train
