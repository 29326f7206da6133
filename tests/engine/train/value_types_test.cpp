// Weights, gradients and moments in 2 bytes: the memory, and the values against those in 4 bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "algorithms/losses/sft_loss.h"
#include "engine/nn/parameters.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/trainer.h"
#include "tests/support/random_decoder.h"

namespace troupe::engine::train {
namespace {

class StorageTest : public testing::Test {
 protected:
  std::unique_ptr<models::Decoder> model(const nn::ValueTypes& types, std::uint64_t seed = 5) {
    models::ModelPart part;
    part.types = types;
    auto made = std::make_unique<models::Decoder>(*device_, spec(seed), true, part);
    test::randomize(made->parameters(), seed + 500, 0.5);
    return made;
  }
  static models::DecoderSpec spec(std::uint64_t seed) {
    models::DecoderSpec spec = test::random_spec(seed);
    spec.tied = tied_;
    return spec;
  }
  std::vector<float> values(Trainer& trainer) {
    return ops::to_host(*device_, trainer.model().parameters().values());
  }
  /// The nearest values of bf16, by the device's upload, which memory_test.cpp checks.
  std::vector<float> rounded(const std::vector<float>& x) {
    Tensor bf16 = device_->empty(Shape{std::ssize(x)}, DType::bf16);
    device_->upload(bf16, x);
    return ops::to_host(*device_, bf16);
  }
  data::Experience batch() { return test::random_batch(3, 6, 12, spec(5).vocabulary); }

  static inline bool tied_ = false;
  std::unique_ptr<ops::Device> device_ = ops::make_cpu_device({.threads = 2});
};

TEST_F(StorageTest, EachOfTheTypesSavesItsBytes) {
  constexpr auto f32 = DType::f32, bf16 = DType::bf16;
  constexpr auto wide = nn::StateType::f32, half = nn::StateType::bf16;
  struct Case {
    nn::ValueTypes types;
    nn::StateType moments;
    double bytes;  // of a parameter
  };
  models::DecoderSpec large = test::llama_spec({.vocabulary = 2000,
                                                .width = 128,
                                                .layers = 4,
                                                .inner = 512,
                                                .heads = 4,
                                                .kv_heads = 4,
                                                .head_size = 32});
  for (const Case& each :
       {Case{{f32, f32}, wide, 16}, Case{{f32, bf16}, wide, 14}, Case{{bf16, f32}, wide, 14},
        Case{{bf16, bf16}, wide, 12}, Case{{f32, f32}, half, 12}, Case{{f32, bf16}, half, 10},
        Case{{bf16, f32}, half, 10}, Case{{bf16, bf16}, half, 8}}) {
    const auto before = device_->memory().now;
    models::ModelPart part;
    part.types = each.types;
    Trainer trainer(std::make_unique<models::Decoder>(*device_, large, true, part),
                    {.moments = each.moments});
    const double used = static_cast<double>(device_->memory().now - before),
                 expected = each.bytes * static_cast<double>(large.parameter_count());
    EXPECT_NEAR(used, expected, 0.01 * expected) << each.bytes << " bytes";
  }
}

// Weights of bf16 in 4 bytes, which each update rounds, are the oracle.
TEST_F(StorageTest, WeightsIn2BytesHaveTheBitsOfRoundedOnesIn4) {
  for (const bool tied : {false, true})
    for (const auto precision : {ops::Precision::f32, ops::Precision::bf16}) {
      tied_ = tied;
      TrainerOptions options{.dtype = precision, .micro_batch_tokens = 20};
      options.optimizer.weights = nn::WeightType::bf16;
      options.optimizer.seed = 7;
      Trainer four(model({}), options), two(model({.values = DType::bf16}), options);
      device_->upload(four.model().parameters().values(), values(two));
      for (int step = 0; step < 3; ++step) {
        EXPECT_EQ(four.forward_backward(batch(), algorithms::SftLoss{}).loss,
                  two.forward_backward(batch(), algorithms::SftLoss{}).loss);
        EXPECT_EQ(value_or_throw(four.update(1e-2)).grad_norm,
                  value_or_throw(two.update(1e-2)).grad_norm);
        ASSERT_EQ(values(four), values(two)) << "step " << step;
      }
      EXPECT_EQ(four.logprobs(batch(), 0.8), two.logprobs(batch(), 0.8));
    }
  tied_ = false;
}

TEST_F(StorageTest, GradientsOfOneMicroBatchIn2BytesAreTheNearestToThoseIn4) {
  Trainer four(model({}), {}), two(model({.grads = DType::bf16}), {});
  for (int step = 0; step < 2; ++step) {
    four.forward_backward(batch(), algorithms::SftLoss{});
    two.forward_backward(batch(), algorithms::SftLoss{});
    EXPECT_EQ(ops::to_host(*device_, two.model().parameters().grads()),
              rounded(ops::to_host(*device_, four.model().parameters().grads())));
    value_or_throw(four.update(0));
    value_or_throw(two.update(0));
  }
}

TEST_F(StorageTest, AllIn2BytesLearnAsIn4) {
  TrainerOptions options{.micro_batch_tokens = 20};
  options.optimizer.seed = 1;
  Trainer four(model({}), options);
  options.moments = nn::StateType::bf16;
  Trainer two(model({DType::bf16, DType::bf16}), options);
  double exact = 0, rounded = 0, first = 0;
  for (int step = 0; step < 40; ++step) {
    exact = four.forward_backward(batch(), algorithms::SftLoss{}).loss;
    rounded = two.forward_backward(batch(), algorithms::SftLoss{}).loss;
    if (step == 0) first = exact;
    value_or_throw(four.update(5e-3));
    value_or_throw(two.update(5e-3));
  }
  EXPECT_LT(exact, 0.8 * first) << "this run shows nothing";
  EXPECT_NEAR(rounded, exact, 0.05 * first);
}

TEST_F(StorageTest, TheAverageOfTheWeightsIsThatOfAPlainLoop) {
  for (const auto type : {DType::f32, DType::bf16}) {
    TrainerOptions options;
    options.optimizer.ema_decay = 0.75;
    Trainer trainer(model({.values = type}), options);
    std::vector<float> average = values(trainer);
    for (int step = 0; step < 3; ++step) {
      trainer.forward_backward(batch(), algorithms::SftLoss{});
      value_or_throw(trainer.update(1e-2));
      const auto now = values(trainer);
      for (std::size_t i = 0; i < now.size(); ++i) average[i] = 0.75F * average[i] + 0.25F * now[i];
      ASSERT_EQ(ops::to_host(*device_, trainer.optimizer().average()), average);
    }
    EXPECT_NE(average, values(trainer));
  }
}

TEST_F(StorageTest, ARestoredAverageIsTheOneThatWasKept) {
  TrainerOptions options;
  options.optimizer.ema_decay = 0.75;
  Trainer trainer(model({}), options), other(model({}, 5), options);
  trainer.forward_backward(batch(), algorithms::SftLoss{});
  value_or_throw(trainer.update(1e-2));
  other.load_state(trainer.state(), trainer.optimizer().average());
  EXPECT_EQ(other.version(), 1U);
  EXPECT_EQ(ops::to_host(*device_, other.optimizer().average()),
            ops::to_host(*device_, trainer.optimizer().average()));
  other.load_state({.updates = 5});
  EXPECT_EQ(other.version(), 5U);
  EXPECT_EQ(ops::to_host(*device_, other.optimizer().average()), values(other));
}

}  // namespace
}  // namespace troupe::engine::train
