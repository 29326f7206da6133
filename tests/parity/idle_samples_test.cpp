// GRPO leaves samples without advantage out of its updates: no bit of the gradient may know.
#include <gtest/gtest.h>

#include "algorithms/grpo_minibatches.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/trainer.h"
#include "tests/support/random_decoder.h"

namespace troupe::algorithms {
namespace {

// Four prompts of two samples; the second and the last pair have equal rewards.
RolloutBatch samples_of(std::uint64_t seed) {
  RolloutBatch samples;
  samples.batch = test::random_batch(seed, 8, 25, test::random_spec(seed).vocabulary);
  samples.completions.resize(8);
  const std::vector<float> advantages{1, -1, 0, 0, 0.5, -0.5, 0, 0};
  for (std::size_t n = 0; n < 8; ++n)
    for (auto t = samples.batch.offsets[n]; t < samples.batch.offsets[n + 1]; ++t) {
      samples.batch.advantage.push_back(advantages[n]);
      samples.batch.old_logp.push_back(-2);
    }
  return samples;
}

std::vector<float> gradient_of(std::uint64_t seed, const engine::data::Experience& update,
                               const GrpoLoss& loss) {
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  engine::train::Trainer trainer(test::random_decoder(*device, seed, true), {});
  trainer.forward_backward(update, loss);
  return engine::ops::to_host(*device, trainer.model().parameters().grads());
}

TEST(IdleSamples, AreLeftOutAndNoBitOfTheGradientKnows) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const RolloutBatch samples = samples_of(seed);
    GrpoConfig config;
    config.group = 2;
    const auto updates = minibatches(samples, config);
    ASSERT_EQ(updates.size(), 1u);
    EXPECT_LE(updates[0].sequences(), 4);
    auto whole = samples.batch;
    whole.count = updates[0].count;
    whole.scale = updates[0].scale;
    EXPECT_EQ(gradient_of(seed, updates[0], config.loss), gradient_of(seed, whole, config.loss))
        << "seed " << seed;
  }
}

TEST(IdleSamples, StayWhereTheLossHasAnotherTerm) {
  const RolloutBatch samples = samples_of(3);
  GrpoConfig with_kl, with_entropy;
  with_kl.group = with_entropy.group = 2;
  with_kl.loss.beta = 0.1;
  with_entropy.loss.entropy_coef = 0.1;
  EXPECT_EQ(minibatches(samples, with_kl)[0].sequences(), 8);
  EXPECT_EQ(minibatches(samples, with_entropy)[0].sequences(), 8);
}

TEST(IdleSamples, AnUpdateOfNothingIsStillAnUpdate) {
  RolloutBatch samples = samples_of(2);
  std::fill(samples.batch.advantage.begin(), samples.batch.advantage.end(), 0.0f);
  GrpoConfig config;
  config.group = 2;
  const auto updates = minibatches(samples, config);
  ASSERT_EQ(updates.size(), 1u);
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  engine::train::Trainer trainer(test::random_decoder(*device, 2, true), {});
  EXPECT_EQ(trainer.forward_backward(updates[0], config.loss).loss, 0);
  EXPECT_EQ(value_or_throw(trainer.update(1e-3)).grad_norm, 0);
  EXPECT_EQ(trainer.version(), 1u);
}

}  // namespace
}  // namespace troupe::algorithms
