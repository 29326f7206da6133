// The loss scale follows Megatron-LM's DynamicGradScaler, and an update that overflows is skipped.
#include "engine/train/loss_scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "algorithms/losses/sft_loss.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/trainer.h"
#include "tests/support/random_decoder.h"

namespace troupe::engine::train {
namespace {

std::vector<double> scales(LossScale& scale, const std::string& updates) {
  std::vector<double> found;
  for (const char each : updates) {
    scale.update(each == 'o');
    found.push_back(scale.value());
  }
  return found;
}

// By hand, with the rules of megatron/core/optimizer/grad_scaler.py (core 0.8): o overflows.
TEST(LossScale, HalvesFromTheHysteresisOnAndDoublesAfterTheWindow) {
  LossScale scale({.initial = 8, .minimum = 2, .window = 2, .hysteresis = 2});
  EXPECT_EQ(scale.value(), 8);
  EXPECT_THAT(scales(scale, "oooo"), testing::ElementsAre(8, 4, 2, 2));
  EXPECT_THAT(scales(scale, "..oo.o.."), testing::ElementsAre(2, 4, 4, 2, 2, 2, 2, 4));
  EXPECT_EQ(scale.state().skipped, 7);
}

TEST(LossScale, ARestoredOneChangesAsTheFirst) {
  const LossScaleConfig config{.initial = 1024, .window = 3, .hysteresis = 2};
  LossScale first(config), second(config);
  scales(first, "..o.");
  second.restore(first.state());
  EXPECT_EQ(scales(first, "..oo..."), scales(second, "..oo..."));
  EXPECT_EQ(first.state().skipped, second.state().skipped);
}

class InF16 : public testing::Test {
 protected:
  std::vector<float> weights(Trainer& trainer) {
    return ops::to_host(*device_, trainer.model().parameters().values());
  }
  Trainer trainer(ops::Precision precision, double scale) {
    return Trainer(
        test::random_decoder(*device_, 5, true),
        {.dtype = precision, .loss_scale = {.initial = scale, .window = 2, .hysteresis = 1}});
  }
  optim::AdamW::Report step(Trainer& trainer) {
    trainer.forward_backward(batch_, algorithms::SftLoss{});
    return value_or_throw(trainer.update(1e-3));
  }

  std::unique_ptr<ops::Device> device_ = ops::make_cpu_device({.threads = 1});
  data::Experience batch_ = test::random_batch(3, 6, 12, test::random_spec(5).vocabulary);
};

TEST_F(InF16, APlantedOverflowIsSkippedAndCountedAndTheScaleRecovers) {
  Trainer trained = trainer(ops::Precision::f16, 1024);
  const auto before = weights(trained);
  auto& table = trained.model().parameters().at("model.embed_tokens.weight");
  trained.forward_backward(batch_, algorithms::SftLoss{});
  Tensor planted = table.grad.flat(0, 1);
  device_->fill(planted, std::numeric_limits<float>::infinity());
  EXPECT_TRUE(value_or_throw(trained.update(1e-3)).skipped);
  EXPECT_EQ(weights(trained), before);
  EXPECT_EQ(trained.version(), 0u);
  EXPECT_EQ(trained.loss_scale()->value(), 512);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(step(trained).skipped);
  EXPECT_EQ(trained.loss_scale()->value(), 1024);
  EXPECT_EQ(trained.loss_scale()->state().skipped, 1);
  EXPECT_EQ(trained.version(), 2u);
  EXPECT_NE(weights(trained), before);
}

// 2^60 dlogp is far above the largest number of f16.
TEST_F(InF16, AScaleThatIsTooLargeFallsUntilUpdatesAreTaken) {
  Trainer trained = trainer(ops::Precision::f16, 0x1p60);
  int skipped = 0;
  while (step(trained).skipped) ASSERT_LT(++skipped, 64);
  EXPECT_GT(skipped, 30);
  EXPECT_EQ(trained.loss_scale()->state().skipped, skipped);
  EXPECT_EQ(trained.loss_scale()->value(), 0x1p60 * std::pow(0.5, skipped));
}

TEST_F(InF16, TheNormAndTheUpdateAreThoseOfTheLossItself) {
  Trainer exact = trainer(ops::Precision::f32, 1), scaled = trainer(ops::Precision::f16, 1024);
  const auto before = weights(exact);
  const double norm = step(exact).grad_norm;
  EXPECT_NEAR(step(scaled).grad_norm, norm, 0.01 * norm);
  const auto a = weights(exact), b = weights(scaled);
  double moved = 0, difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    moved += std::pow(a[i] - before[i], 2);
    difference += std::pow(a[i] - b[i], 2);
  }
  EXPECT_LT(std::sqrt(difference / moved), 0.15) << "the first update of AdamW has the signs alone";
}

}  // namespace
}  // namespace troupe::engine::train
