// The arithmetic of a PPO rollout step: advantages and returns from rewards, process rewards,
// reference and critic.
#include "algorithms/ppo_minibatches.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

namespace troupe::algorithms {
namespace {

/// Two samples of prompts of two tokens: one of three tokens that ended, one of two that was
/// truncated. max_new_tokens is 4.
struct Fixture {
  RolloutBatch samples;
  std::vector<float> values;
  PpoConfig config;

  Fixture() {
    config.kl_coef = 0;
    config.whiten_advantages = false;
    config.sampling.max_new_tokens = 4;
    add({5, 6, 7}, protocol::FinishReason::stop, 1.0);
    add({8, 9}, protocol::FinishReason::length, -1.0);
    values = {0, .125f, .25f, .5f, .75f, 0, .5f, .25f, 1};  // of the state after each token
  }
  void add(std::vector<std::int32_t> ids, protocol::FinishReason finish, double reward) {
    std::vector<std::int32_t> all{1, 2};
    all.insert(all.end(), ids.begin(), ids.end());
    std::vector<float> mask(all.size(), 1);
    mask[0] = mask[1] = 0;
    samples.batch.append(all, mask);
    samples.batch.old_logp.resize(samples.batch.tokens.size(), -1);
    samples.completions.push_back(
        {samples.completions.size(), std::move(ids), {}, {}, "", finish, {}, 0});
    samples.rewards.push_back({reward, {}, ""});
  }
  RolloutBatch& compute_advantages(double kl_coef = 0) {
    algorithms::compute_advantages(samples, values, kl_coef, config);
    return samples;
  }
  double metric(const std::string& name) const {
    for (const auto& [key, value] : samples.metrics)
      if (key == name) return value;
    ADD_FAILURE() << name << " is not reported";
    return std::nan("");
  }
};

std::vector<float> slice(const std::vector<float>& column, std::size_t begin, std::size_t end) {
  return {column.begin() + static_cast<std::ptrdiff_t>(begin),
          column.begin() + static_cast<std::ptrdiff_t>(end)};
}

// With lambda 1 and gamma 1 a return is the sum of the following rewards, for any critic.
TEST(PpoMinibatches, AScoreIsTheReturnOfEveryTokenOfItsSample) {
  Fixture r;
  r.config.gae.lambda = 1;
  const auto& b = r.compute_advantages().batch;
  EXPECT_EQ(slice(b.returns, 2, 5), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(slice(b.returns, 7, 9), (std::vector<float>{-1, -1}));
  EXPECT_EQ(slice(b.value, 2, 5), (std::vector<float>{.125f, .25f, .5f}))
      << "the value of a token is that of the state before it";
  EXPECT_EQ(slice(b.advantage, 7, 9), (std::vector<float>{-1.5f, -1.25f}));
}

TEST(PpoMinibatches, StepsPayWhereTheyEndAndTheScoreIsWhatIsLeft) {
  Fixture r;
  r.config.gae.lambda = 1;
  r.samples.rewards[0] = {
      0.5, {}, "", {{0, .25}, {1, -.75}}, -0.5};  // outcome 1, steps -0.5 together
  const auto& b = r.compute_advantages().batch;
  EXPECT_EQ(slice(b.returns, 2, 5), (std::vector<float>{.5f, .25f, 1}));
  EXPECT_DOUBLE_EQ(r.metric("critic/score/max"), 0.5);
}

TEST(PpoMinibatches, ABaselineIsTakenFromEveryStep) {
  Fixture r;
  r.config.gae.lambda = 1;
  r.config.step_baseline = .5;
  r.samples.rewards[0] = {1, {}, "", {{0, 1}, {2, .25}}, 0};
  EXPECT_EQ(slice(r.compute_advantages().batch.returns, 2, 5),
            (std::vector<float>{1.25f, .75f, .75f}));
}

TEST(PpoMinibatches, UnderTheMinFormOnlyTheWorstStepPays) {
  Fixture r;
  r.config.gae.lambda = 1;
  r.config.credit = Credit::min;
  r.config.credit_temperature = 1e-3;
  r.samples.rewards[0] = {.25, {}, "", {{0, .75}, {1, .25}, {2, .5}}, .25};
  const auto& b = r.compute_advantages().batch;
  EXPECT_EQ(slice(b.returns, 2, 5), (std::vector<float>{.25f, .25f, 0}))
      << "nothing is earned or lost after the worst step";
}

TEST(PpoMinibatches, TheDistanceToTheReferenceIsPaidForTokenByToken) {
  Fixture r;
  r.config.gae.lambda = 1;
  r.config.kl_coef = .5;
  r.samples.batch.reference_logp = {0, 0, -2, -1, -1, 0, 0, -1, -3};  // k1: 1, 0, 0 and 0, 2
  const auto& b = r.compute_advantages(.5).batch;
  EXPECT_EQ(slice(b.returns, 2, 5), (std::vector<float>{.5f, 1, 1}));
  EXPECT_EQ(slice(b.returns, 7, 9), (std::vector<float>{-2, -2}));
  EXPECT_DOUBLE_EQ(r.metric("objective/kl"), 1.5);
  EXPECT_DOUBLE_EQ(r.metric("objective/non_score_reward"), -.75);
  EXPECT_DOUBLE_EQ(r.metric("objective/rlhf_reward"), -.75);
  EXPECT_DOUBLE_EQ(mean_kl(b, r.config), 1.5);
}

TEST(PpoMinibatches, InTheLossTheDistanceIsNoReward) {
  Fixture r;
  r.config.gae.lambda = 1;
  r.config.kl_coef = .5;
  r.config.kl_place = KlPlace::loss;
  r.samples.batch.reference_logp = {0, 0, -2, -1, -1, 0, 0, -1, -3};
  EXPECT_EQ(slice(r.compute_advantages(.5).batch.returns, 2, 5), (std::vector<float>{1, 1, 1}));
  EXPECT_DOUBLE_EQ(r.metric("objective/non_score_reward"), 0);
}

TEST(PpoMinibatches, ACutSampleMayBootstrapFromTheCritic) {
  Fixture r;
  r.config.gae.lambda = 1;
  r.config.truncated = Bootstrap::value;
  const auto& b = r.compute_advantages().batch;
  EXPECT_EQ(slice(b.returns, 2, 5), (std::vector<float>{1, 1, 1})) << "this one ended by itself";
  EXPECT_EQ(slice(b.returns, 7, 9), (std::vector<float>{0, 0}))
      << "score -1 and the value 1 of the state behind the cut";
}

TEST(PpoMinibatches, AScoreBehindTheEndIsOneStepLaterWhereThereIsRoom) {
  Fixture r;
  r.config.gae.lambda = 0;
  r.config.gae.gamma = .5;
  r.config.place = ScorePlace::after_end;
  const auto& b = r.compute_advantages().batch;
  EXPECT_EQ(slice(b.returns, 2, 5), (std::vector<float>{.125f, .25f, .375f}))
      << "the last token reads the state after the end";
  EXPECT_EQ(b.returns[8], -1) << "a cut sample has no state behind its end";
}

TEST(PpoMinibatches, AMissingEndIsPunished) {
  Fixture r;
  r.config.score.missing_eos_penalty = 2;
  r.compute_advantages();
  EXPECT_DOUBLE_EQ(r.metric("objective/scores"), (1 - 3) / 2.0);
  EXPECT_DOUBLE_EQ(r.metric("val/num_eos_tokens"), 1);
}

TEST(PpoMinibatches, AFailedRewardIsCountedAndNotTrainedOn) {
  Fixture r;
  r.samples.rewards[1] = {std::nullopt, {}, "the reward program died"};
  apply_rewards(r.samples);
  const auto& b = r.compute_advantages().batch;
  EXPECT_EQ(trained_tokens(b), 3);
  EXPECT_DOUBLE_EQ(r.metric("rewards/failed"), 1);
  EXPECT_DOUBLE_EQ(r.metric("reward"), 1);
}

TEST(PpoMinibatches, FailuresOfRewardProgramsAreCountedByTheirKind) {
  Fixture r;
  using protocol::FailureKind;
  r.samples.rewards[0] = {.reward = std::nullopt,
                          .failure = "manners: timeout: no answer after 5 s",
                          .failure_kinds = {FailureKind::timeout}};
  r.samples.rewards[1] = {.reward = std::nullopt,
                          .failure = "manners: timeout: ...; tests: crash: ...",
                          .failure_kinds = {FailureKind::timeout, FailureKind::crash}};
  apply_rewards(r.samples);
  const auto found = reward_part_metrics(r.samples);
  const std::map<std::string, double> counts(found.begin(), found.end());
  EXPECT_EQ(counts.at("rewards/failed/timeout"), 2);
  EXPECT_EQ(counts.at("rewards/failed/crash"), 1);
  EXPECT_FALSE(counts.contains("rewards/failed/flood"));
}

TEST(PpoMinibatches, WhitenedAdvantagesHaveNoMeanAndReturnsAreLeftAsTheyAre) {
  Fixture plain, white;
  white.config.whiten_advantages = true;
  const auto &raw = plain.compute_advantages().batch, &b = white.compute_advantages().batch;
  EXPECT_EQ(raw.returns, b.returns);
  double sum = 0;
  for (std::size_t t = 0; t < b.tokens.size(); ++t)
    sum += b.mask[t] != 0 ? static_cast<double>(b.advantage[t]) : 0;
  EXPECT_NEAR(sum, 0, 1e-6);
}

TEST(PpoMinibatches, TheCriticScoresEveryStateThatATokenWasChosenInAndForTheLast) {
  const Fixture r;
  EXPECT_EQ(critic_inputs(r.samples.batch).mask, (std::vector<float>{0, 1, 1, 1, 1, 0, 1, 1, 1}));
}

TEST(PpoMinibatches, EveryEpochTrainsOnEverySampleOnceInAnotherOrder) {
  Fixture r;
  for (int i = 0; i < 6; ++i) r.add({5, 6}, protocol::FinishReason::stop, i);
  r.values.resize(r.samples.batch.tokens.size(), 0);
  for (std::size_t n = 0; n < r.samples.completions.size(); ++n)
    r.samples.batch.sample_id.push_back(n);
  r.compute_advantages();
  r.config.epochs = 3;
  r.config.minibatches = 2;
  const auto updates = minibatches(r.samples, r.config, 4),
             again = minibatches(r.samples, r.config, 4),
             other = minibatches(r.samples, r.config, 5);
  ASSERT_EQ(updates.size(), 6u);
  std::map<std::uint64_t, int> seen;
  bool moved = false;
  for (std::size_t i = 0; i < updates.size(); ++i) {
    for (const auto id : updates[i].policy.sample_id) ++seen[id];
    EXPECT_EQ(updates[i].policy.sample_id, updates[i].critic.sample_id);
    EXPECT_EQ(updates[i].policy.sample_id, again[i].policy.sample_id) << "the same after a restart";
    EXPECT_EQ(updates[i].critic.count, trained_tokens(updates[i].critic));
    moved = moved || updates[i].policy.sample_id != other[i].policy.sample_id;
  }
  EXPECT_TRUE(moved);
  for (std::uint64_t id = 0; id < 8; ++id) EXPECT_EQ(seen[id], 3) << "sample " << id;
}

}  // namespace
}  // namespace troupe::algorithms
