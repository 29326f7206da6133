// PPO's policy and value losses on the published inputs: numbers computed independently in float64,
// to 1e-9; and their gradients.
#include "algorithms/losses/ppo_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "algorithms/losses/value_loss.h"
#include "engine/base/errors/check.h"
#include "tests/algorithms/losses/cases.h"

namespace troupe::algorithms {
namespace {

using namespace troupe::test;

struct PublishedPolicy : PublishedTokens {
  double operator()(const PpoLoss& loss, Report& report) {
    set_constants(b, loss.aggregation, 7, 8);
    return slopes_of(loss, logp, std::vector<double>(logp.size(), 1.5), b, report).loss;
  }
};

TEST(PpoLoss, HasThePublishedValuesAndClipFraction) {
  const PpoLoss token{.surrogate = {.clip_high = 0.28}};
  PpoLoss sequence = token;
  sequence.aggregation = Aggregation::sequence;
  Report report, other;
  EXPECT_NEAR(PublishedPolicy()(token, report), -0.3433462610, 1e-9);
  EXPECT_NEAR(PublishedPolicy()(sequence, other), -0.2318482972, 1e-9);
  const auto found = report.values();
  EXPECT_NEAR(found.at("policy/clipfrac_avg"), 1.0 / 7, 1e-12);
  EXPECT_NEAR(found.at("loss/policy_avg"), -0.3433462610, 1e-9);
  EXPECT_NEAR(found.at("policy/approxkl_avg"), (.04 + 0 + .25 + .04 + .16 + .09 + 0) / 14, 1e-12);
  EXPECT_NEAR(found.at("actor/ppo_kl"), 0, 1e-12) << "the changes add up to zero";
  EXPECT_NEAR(found.at("policy/entropy_avg"), 1.5, 1e-12);
}

// Decoupled PPO: w = p_old / p_rollout, truncated at 2, times the clipped surrogate around p_old.
TEST(PpoLoss, AnImportanceWeightMultipliesTheSurrogateOnly) {
  PublishedPolicy p;
  const std::vector<double> weights{1, .5, 1.5, 3, 1, 1, .25, 8, 1};
  for (std::size_t t = 0; t < p.b.tokens.size(); ++t)
    p.b.rollout_logp.push_back(
        static_cast<float>(static_cast<double>(p.b.old_logp[t]) - std::log(weights[t])));
  p.b.reference_logp = p.b.old_logp;
  double expected = 0, kl = 0;
  for (std::size_t t = 0; t < p.b.tokens.size(); ++t) {
    if (p.b.mask[t] == 0) continue;
    const double change = p.logp[t] - static_cast<double>(p.b.old_logp[t]),
                 advantage = static_cast<double>(p.b.advantage[t]), rho = std::exp(change);
    const double w =
        std::exp(static_cast<double>(p.b.old_logp[t]) - static_cast<double>(p.b.rollout_logp[t]));
    expected -=
        std::min(w, 2.0) * std::min(rho * advantage, std::clamp(rho, 0.8, 1.2) * advantage) / 7;
    kl += change * change / 2 / 7;
  }
  PpoLoss loss{.kl_coef = 0.5, .kl = KlEstimator::k2};
  loss.correction = {.weight = Over::token, .high = 2};
  Report report;
  EXPECT_NEAR(p(loss, report), expected + 0.5 * kl, 1e-12);
  const auto found = report.values();
  EXPECT_NEAR(found.at("sampling/is_oob_ratio"), 2.0 / 7, 1e-12);
  EXPECT_NEAR(found.at("sampling/importance_sampling_ratio/max"), 2, 1e-12);
  EXPECT_NEAR(found.at("loss/policy_avg"), expected, 1e-12);

  p.b.rollout_logp.clear();
  Report without, plain;
  const double uncorrected = p(PpoLoss{.kl_coef = 0.5, .kl = KlEstimator::k2}, plain);
  EXPECT_EQ(p(loss, without), uncorrected) << "samples of the same weights";
}

// Decoupled PPO around a policy between the rollouts' (version 3) and pi (version 7): its log p is
// (1/4) log p_rollout + (3/4) log p, because (7 - 1 - 3) / (7 - 3) = 3/4 (AReaL).
TEST(PpoLoss, ApproximatesTheProximalPolicyByVersions) {
  PpoLoss loss{.proximal = Proximal::loglinear, .version = 7};
  loss.correction = {.weight = Over::token, .high = 2};
  PublishedPolicy p;
  p.b.version.assign(p.b.offsets.size() - 1, 3);
  PublishedPolicy given = p;
  given.b.rollout_logp = p.b.old_logp;
  for (std::size_t t = 0; t < p.b.tokens.size(); ++t)
    given.b.old_logp[t] = static_cast<float>(0.25 * static_cast<double>(p.b.old_logp[t]) +
                                             0.75 * static_cast<double>(p.logp[t]));
  p.b.rollout_logp.clear();
  PpoLoss around;
  around.correction = loss.correction;
  Report approximated, exact;
  EXPECT_NEAR(p(loss, approximated), given(around, exact), 1e-6) << "float old_logp";
}

TEST(PpoLoss, RejectsBoundsOfACorrectionThatExcludeEverything) {
  PpoLoss loss;
  loss.correction = {.weight = Over::token, .low = 3, .high = 2};
  const auto wrong = loss.validate();
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().what.find("ppo.correction"), std::string::npos) << wrong.error().what;
}

TEST(PpoLoss, DualClipHasThePublishedValue) {
  Experience b;
  b.append({1, 2}, {0, 1});
  b.old_logp = {0, -2};
  b.advantage = {0, -.5f};
  b.count = 1;
  Report report;
  const std::vector<double> logp{0, -2 + std::log(4)}, entropy(2);
  EXPECT_NEAR(slopes_of(PpoLoss{}, logp, entropy, b, report).loss, 2.0, 1e-9);
  EXPECT_NEAR(slopes_of(PpoLoss{.surrogate = {.dual_clip = 3}}, logp, entropy, b, report).loss, 1.5,
              1e-9);
}

TEST(PpoLoss, KlAndEntropyAreTermsOfTheLoss) {
  PublishedPolicy p;
  Report report;
  const double plain = p(PpoLoss{}, report);
  p.b.reference_logp = p.b.old_logp;  // log pi - log ref is then the ratio's own difference
  const double k2 = (.04 + 0 + .25 + .04 + .16 + .09 + 0) / 2 / 7;
  EXPECT_NEAR(p(PpoLoss{.kl_coef = 0.5, .kl = KlEstimator::k2}, report), plain + 0.5 * k2, 1e-9);
  EXPECT_NEAR(p(PpoLoss{.entropy_coef = 0.1}, report), plain - 0.1 * 1.5, 1e-9);
}

TEST(PpoLoss, RefusesNonsense) {
  EXPECT_FALSE(accepted(PpoLoss{.surrogate = {.clip_low = 2}}));
  EXPECT_FALSE(accepted(PpoLoss{.kl_coef = -1}));
  EXPECT_FALSE(accepted(PpoLoss{.temperature = 0}));
  EXPECT_TRUE(accepted(PpoLoss{}));
}

struct Critic {
  Experience b;
  std::vector<double> values;
};

/// Exact differences in float64: V - R and V - V_old as in the table.
Critic published_critic() {
  Critic c;
  c.b.append({1, 2, 3, 4, 5}, {0, 1, 1, 1, 1});
  c.values = {9, .5, .1, .9, .4};
  c.b.value = {9, .1f, .2f, .3f, .4f};
  c.b.returns = {9, .6f, .6f, .8f, 1};
  c.b.count = 4;
  return c;
}

double value_loss(const ValueLoss& loss, const std::vector<double>& values, const Experience& b,
                  Report& report, std::vector<double>* gradient = nullptr) {
  engine::loss::TokenStats now;
  now.scores.push_back(engine::loss::variable(values));
  const Expr scalar = loss(now, b, report);
  if (gradient != nullptr) *gradient = gradients(scalar, now.scores).front();
  return scalar.value();
}

TEST(ValueLoss, HasThePublishedValues) {
  const auto c = published_critic();
  Report report;
  // float32 columns: 1e-8, not 1e-9
  EXPECT_NEAR(value_loss({.clip = 0.2}, c.values, c.b, report), 0.09875, 2e-8);
  EXPECT_NEAR(value_loss({.clip = 0.5}, c.values, c.b, report), 0.07875, 2e-8);
}

TEST(ValueLoss, HasThePublishedValuesTo1e9WhereColumnsAreExact) {
  // The same table times 10: every number is one of float32; losses grow by 100.
  Critic c = published_critic();
  c.b.value = {90, 1, 2, 3, 4};
  c.b.returns = {90, 6, 6, 8, 10};
  c.values = {90, 5, 1, 9, 4};
  Report report;
  EXPECT_NEAR(value_loss({.clip = 2}, c.values, c.b, report) / 100, 0.09875, 1e-12);
  EXPECT_NEAR(value_loss({.clip = 5}, c.values, c.b, report) / 100, 0.07875, 1e-12);
  EXPECT_NEAR(value_loss({.clip = 2, .coef = 0.1}, c.values, c.b, report) / 100, 0.009875, 1e-12);
}

TEST(ValueLoss, WithoutAClipIsHalfTheMeanSquareAndHuberIsStraightFarAway) {
  Critic c = published_critic();
  c.b.value.clear();
  c.b.returns = {90, 6, 6, 8, 10};
  c.values = {90, 5, 1, 9, 4};
  Report report;
  EXPECT_NEAR(value_loss({.clip = 0}, c.values, c.b, report), (1 + 25 + 1 + 36) / 8.0, 1e-12);
  EXPECT_NEAR(value_loss({.clip = 0, .huber = 5}, c.values, c.b, report),
              (.5 + 12.5 + .5 + (5 * 6 - 12.5)) / 4, 1e-12);
}

TEST(ValueLoss, HasTheGradientsOfFiniteDifferences) {
  const Experience made = [] {
    Experience b = ragged_batch();
    for (std::size_t t = 0; t < b.tokens.size(); ++t) {
      b.value.push_back(static_cast<float>(draw(11, t, -1, 1)));
      b.returns.push_back(static_cast<float>(draw(12, t, -2, 2)));
    }
    b.count = 7;
    b.scale = 1;
    return b;
  }();
  std::vector<double> values;
  for (std::size_t t = 0; t < made.tokens.size(); ++t)
    values.push_back(static_cast<double>(made.value[t]) + draw(13, t, -.6, .6));
  for (const ValueLoss loss :
       {ValueLoss{}, ValueLoss{.clip = 0}, ValueLoss{.clip = 0.3, .huber = 0.7, .coef = 0.1}}) {
    Report report;
    std::vector<double> claimed;
    value_loss(loss, values, made, report, &claimed);
    const double h = 1e-6;
    for (std::size_t t = 0; t < values.size(); ++t) {
      auto up = values, down = values;
      up[t] += h;
      down[t] -= h;
      const double found =
          (value_loss(loss, up, made, report) - value_loss(loss, down, made, report)) / (2 * h);
      EXPECT_NEAR(claimed[t], found, 1e-7) << "token " << t;
    }
  }
}

TEST(ValueLoss, ASplitChangesNothingAndWhatIsNotTrainedOnMayCarryAnything) {
  Experience b = ragged_batch();
  std::vector<double> values;
  for (std::size_t t = 0; t < b.tokens.size(); ++t) {
    const bool trained = b.mask[t] != 0;
    b.value.push_back(trained ? static_cast<float>(draw(11, t, -1, 1))
                              : std::numeric_limits<float>::quiet_NaN());
    b.returns.push_back(trained ? static_cast<float>(draw(12, t, -2, 2))
                                : std::numeric_limits<float>::quiet_NaN());
    values.push_back(trained ? draw(13, t, -2, 2) : std::numeric_limits<double>::quiet_NaN());
  }
  b.count = 20;
  Report whole, parts;
  const double together = value_loss({}, values, b, whole);
  double separate = 0;
  for (std::int32_t n = 0; n < b.sequences(); n += 2) {
    const auto begin = b.offsets[static_cast<std::size_t>(n)],
               end = b.offsets[static_cast<std::size_t>(n) + 2];
    separate += value_loss({}, part(values, begin, end), b.slice(n, n + 2), parts);
  }
  EXPECT_NEAR(together, separate, 1e-12);
  EXPECT_TRUE(std::isfinite(together));
  for (const auto& [key, value] : whole.values())
    EXPECT_NEAR(value, parts.values().at(key), 1e-12) << key;
}

TEST(ValueLoss, RefusesNonsenseAndAMissingColumnIsABug) {
  EXPECT_FALSE(accepted(ValueLoss{.clip = -1}));
  EXPECT_FALSE(accepted(ValueLoss{.coef = 0}));
  EXPECT_TRUE(accepted(ValueLoss{}));
  Critic c = published_critic();
  c.b.returns.clear();
  Report report;
  EXPECT_THROW(value_loss({}, c.values, c.b, report), Bug);
}

}  // namespace
}  // namespace troupe::algorithms
