// Rollout and trainer speak of the same numbers: what a sample was drawn with has the bits that the
// trainer gives it later.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "actors/roles/rollout.h"
#include "actors/roles/trainer.h"
#include "algorithms/catalog.h"
#include "algorithms/losses/grpo_loss.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/support/random_decoder.h"

namespace troupe {
namespace {

namespace protocol = actors::protocol;
using engine::data::Experience;

class RolloutParity : public testing::TestWithParam<double> {
 protected:
  void make(std::uint64_t seed) {
    seed_ = seed;
    auto trainer = std::make_unique<engine::train::Trainer>(
        test::random_decoder(*device_, seed, true),
        engine::train::TrainerOptions{.micro_batch_tokens = 40});
    vocabulary_ = trainer->model().spec().vocabulary;
    trainer_.emplace(std::move(trainer), algorithms::losses(), nullptr);
    // The rollout starts from other weights: only what is published may count.
    rollout_.emplace(value_or_throw(actors::roles::Rollout::create(
        test::random_decoder(*device_, seed, false), test::random_decoder(*device_, seed, false),
        {.pages = 20, .max_sequences = 5, .tokens_per_step = 30})));
  }

  void bring_weights() {
    const auto weights = trainer_->on(protocol::Publish{});
    const auto logp = value_or_throw(rollout_->on(protocol::PrepareWeights{weights}));
    EXPECT_EQ(logp, weights.probe.logp) << "the probe is scored by the same bits";
    value_or_throw(rollout_->on(protocol::CommitWeights{weights.version}));
  }

  /// Groups of samples of random prompts as a batch that is to be trained on, with what the rollout
  /// said of them.
  Experience sample() {
    bring_weights();
    protocol::Generate question;
    question.sampling.temperature = GetParam();
    question.sampling.max_new_tokens = 15;
    question.sampling.seed = seed_;
    for (std::uint64_t i = 0; i < 12; ++i) {
      protocol::SampleRequest& request = question.requests.emplace_back();
      request.prompt = prompt(i / 4);
      request.sample_id = i;
    }
    const auto requests = question.requests;
    const auto drawn = value_or_throw(rollout_->on(std::move(question)));
    Experience batch;
    for (std::size_t n = 0; n < drawn.size(); ++n) {
      auto ids = requests[n].prompt;
      std::vector<float> mask(ids.size(), 0.0f);
      batch.old_logp.insert(batch.old_logp.end(), ids.size(), 0.0f);
      batch.old_logp.insert(batch.old_logp.end(), drawn[n].logp.begin(), drawn[n].logp.end());
      ids.insert(ids.end(), drawn[n].ids.begin(), drawn[n].ids.end());
      mask.resize(ids.size(), 1.0f);
      batch.append(ids, mask);
      batch.advantage.resize(batch.tokens.size(), n % 4 < 2 ? 1.0f : -0.8f);
    }
    for (const float weight : batch.mask) batch.count += static_cast<double>(weight);
    return batch;
  }
  std::vector<std::int32_t> prompt(std::uint64_t which) const {
    std::vector<std::int32_t> ids(1 + uniform_below(20, seed_, 900 + which, 0));
    for (std::size_t i = 0; i < ids.size(); ++i)
      ids[i] = static_cast<std::int32_t>(
          uniform_below(static_cast<std::uint64_t>(vocabulary_), seed_, 900 + which, i + 1));
    return ids;
  }

  std::uint64_t seed_ = 0;
  std::int64_t vocabulary_ = 0;
  std::unique_ptr<engine::ops::Device> device_ = engine::ops::make_cpu_device({.threads = 2});
  std::optional<actors::roles::Trainer> trainer_;
  std::optional<actors::roles::Rollout> rollout_;
};

std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> out;
  for (const float x : values) out.push_back(std::bit_cast<std::uint32_t>(x));
  return out;
}

TEST_P(RolloutParity, ASampledTokensProbabilityHasTheTrainersBits) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    make(seed);
    const Experience batch = sample();
    EXPECT_EQ(bits(trainer_->on(protocol::Logprobs{batch, GetParam()})), bits(batch.old_logp))
        << "decoder " << seed;
  }
}

TEST_P(RolloutParity, TheFirstUpdateOfFreshSamplesHasRatiosOfExactlyOne) {
  algorithms::GrpoLoss loss;
  loss.temperature = GetParam();
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    make(seed);
    for (int update = 0; update < 3; ++update) {
      const Experience batch = sample();
      const auto stats =
          value_or_throw(trainer_->on(protocol::TrainStep{batch, spec_of(loss), 1e-2}));
      EXPECT_THAT(stats.metrics, testing::IsSupersetOf({testing::Pair("ratio/min", 1.0),
                                                        testing::Pair("ratio/max", 1.0)}));
      EXPECT_NE(bits(trainer_->on(protocol::Logprobs{batch, GetParam()})), bits(batch.old_logp))
          << "the update must have done something";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Temperatures, RolloutParity, testing::Values(1.0, 0.7),
                         [](const auto& each) { return each.param == 1 ? "One" : "SevenTenths"; });

}  // namespace
}  // namespace troupe
