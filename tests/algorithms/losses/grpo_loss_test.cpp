// GRPO's family on the published inputs: numbers computed independently in float64, to 1e-9.
#include "algorithms/losses/grpo_loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/errors/check.h"
#include "tests/algorithms/losses/cases.h"

namespace troupe::algorithms {
namespace {

using namespace troupe::test;

struct PublishedGrpo : PublishedTokens {
  double operator()(const GrpoLoss& loss) const {
    Report report;
    return slopes_of(loss, logp, std::vector<double>(logp.size()), b, report).loss;
  }
  void expect(GrpoLoss loss, double sequence, double token, double constant) {
    const std::vector<std::pair<Aggregation, double>> expected{{Aggregation::sequence, sequence},
                                                               {Aggregation::token_local, token},
                                                               {Aggregation::token_global, token},
                                                               {Aggregation::constant, constant}};
    for (const auto& [aggregation, value] : expected) {
      loss.aggregation = aggregation;
      ASSERT_TRUE(loss.validate());
      set_constants(b, aggregation, 7, 8);
      EXPECT_NEAR((*this)(loss), value, 1e-9)
          << names_of(aggregation)[static_cast<std::size_t>(aggregation)];
    }
  }
};

TEST(GrpoLoss, ClipHasThePublishedValues) {
  PublishedGrpo().expect({.surrogate = {.clip_high = 0.28}}, -0.2318482972, -0.3433462610,
                         -0.1502139892);
}

TEST(GrpoLoss, TwoSidedClipHasThePublishedValues) {
  PublishedGrpo().expect({.surrogate = {.clip_high = 0.28, .delta = 1.4}}, -0.2395003553,
                         -0.3499051680, -0.1530835110);
}

TEST(GrpoLoss, SequenceRatioHasThePublishedValues) {
  PublishedGrpo().expect({.surrogate = {.clip_high = 0.28}, .ratio = RatioLevel::sequence},
                         -0.2291811776, -0.3357709968, -0.1468998111);
}

TEST(GrpoLoss, K3HasThePublishedValues) {
  PublishedGrpo p;
  const auto difference =
      with_prompt_token({{.1, .2, -.2, .1}, {.1, -.1, .1}});  // log pi - log ref
  p.b.reference_logp.assign(p.b.tokens.size(), -1);
  for (std::size_t t = 0; t < p.logp.size(); ++t) p.logp[t] = -1 + difference[t];
  p.b.old_logp.clear();
  p.b.advantage.assign(p.b.tokens.size(), 0);
  p.expect({.beta = 1, .kl_times_ratio = false}, 0.0087003358, 0.0092363002, 0.0040408813);
  p.expect({.beta = 1, .kl_times_ratio = true}, 0.0087003358, 0.0092363002,
           0.0040408813);  // the ratio is 1
}

TEST(GrpoLoss, CountsClippedTokensOnTheSideWhereTheyAreClipped) {
  PublishedGrpo p;
  p.b.count = 7;
  Report report;
  slopes_of(GrpoLoss{.surrogate = {.clip_high = 0.28}}, p.logp, std::vector<double>(p.logp.size()),
            p.b, report);
  const auto values = report.values();
  EXPECT_NEAR(values.at("clip_ratio/region_mean"), 1.0 / 7, 1e-12);
  EXPECT_NEAR(values.at("clip_ratio/low_mean"), 1.0 / 7, 1e-12);
  EXPECT_EQ(values.at("clip_ratio/high_mean"), 0);
  EXPECT_NEAR(values.at("ratio/min"), std::exp(-0.5), 1e-12);
  EXPECT_NEAR(values.at("ratio/max"), std::exp(0.4), 1e-12);
}

TEST(GrpoLoss, WithoutOldLogProbabilitiesTheRatioIsOneAndItsGradientThatOfLogPi) {
  PublishedGrpo p;
  p.b.count = 7;
  p.b.old_logp.clear();
  Report report;
  const auto out = slopes_of(GrpoLoss{}, p.logp, std::vector<double>(p.logp.size()), p.b, report);
  EXPECT_NEAR(out.loss, -(4 * 1 - 3 * 0.5) / 7, 1e-15);
  for (std::size_t t = 0; t < p.logp.size(); ++t)
    EXPECT_NEAR(out.dlogp[t], -p.b.mask[t] * p.b.advantage[t] / 7.0, 1e-12);
  EXPECT_EQ(report.values().at("ratio/min"), 1);
  EXPECT_EQ(report.values().at("ratio/max"), 1);
}

TEST(GrpoLoss, TheRatioGivesTheKlTermItsUnbiasedGradientAtRatioOne) {
  PublishedGrpo p;
  p.b.count = 7;
  p.b.reference_logp = p.b.old_logp;
  p.b.old_logp.clear();
  p.b.advantage.assign(p.b.tokens.size(), 0);
  const auto derivative = [&](bool times_ratio) {
    Report report;
    const GrpoLoss loss{.beta = 0.5, .kl_times_ratio = times_ratio};
    return slopes_of(loss, p.logp, std::vector<double>(p.logp.size()), p.b, report).dlogp[3];
  };
  const double x = -0.5, k3 = std::exp(-x) - 1 + x, dk3 = 1 - std::exp(-x);
  EXPECT_NEAR(derivative(false), 0.5 * dk3 / 7, 1e-12);
  EXPECT_NEAR(derivative(true), 0.5 * (dk3 + k3) / 7, 1e-12);
}

TEST(GrpoLoss, TheProximalPolicyMayBeGuessedFromTheVersions) {
  PublishedGrpo p;
  p.b.count = 7;
  p.b.version = {3, 4};
  const GrpoLoss loss{.surrogate = {.clip_low = 1, .clip_high = 9},
                      .correction = {.weight = Over::token, .high = 0},
                      .proximal = Proximal::loglinear,
                      .version = 5,
                      .aggregation = Aggregation::token_local};
  // Half way for the first answer, at the behaviour for the second; weight times ratio is pi /
  // behaviour wherever the proximal policy is.
  double expected = 0;
  for (std::size_t t = 0; t < p.logp.size(); ++t)
    if (p.b.mask[t] != 0)
      expected -= std::exp(p.logp[t] - static_cast<double>(p.b.old_logp[t])) *
                  static_cast<double>(p.b.advantage[t]) / 7;
  EXPECT_NEAR(p(loss), expected, 1e-12);
  Report report;
  const auto out = slopes_of(loss, p.logp, std::vector<double>(p.logp.size()), p.b, report);
  EXPECT_NEAR(report.values().at("ratio/max"), std::exp(0.4), 1e-12)
      << "of the second answer, whose share is 0";
  EXPECT_NEAR(out.dlogp[1], -std::exp(0.2) / 7, 1e-12);
}

TEST(GrpoLoss, AWeightOfTheSampleMultipliesItsSurrogateAndNotItsKl) {
  PublishedGrpo p;
  p.b.count = 7;
  p.b.rollout_logp = p.b.old_logp;
  for (float& logp : p.b.rollout_logp) logp -= 0.5f;
  p.b.reference_logp.assign(p.b.tokens.size(), -1);
  const GrpoLoss bare{.beta = 0.5},
      weighed{.beta = 0.5, .correction = {.weight = Over::token, .high = 0}};
  const GrpoLoss no_kl{};
  EXPECT_NEAR(p(weighed) - p(bare), (std::exp(0.5) - 1) * p(no_kl), 1e-7);
}

// The property by which grpo_minibatches.cpp leaves out samples of advantage 0.
TEST(GrpoLoss, KnowsWhetherASampleOfAdvantageZeroCouldChangeAnything) {
  for (std::size_t i = 0; i < names_of(SurrogateKind{}).size(); ++i) {
    PublishedGrpo p;
    p.b.count = 7;
    p.b.advantage.assign(p.b.tokens.size(), 0);
    const GrpoLoss loss{.surrogate = {.kind = static_cast<SurrogateKind>(i)}};
    if (loss.surrogate.chooses_tokens()) {
      EXPECT_FALSE(loss.advantage_is_all()) << "its tokens have a part in which others are chosen";
      continue;
    }
    Report report;
    const auto out = slopes_of(loss, p.logp, std::vector<double>(p.logp.size()), p.b, report);
    double maximum = std::abs(out.loss);
    for (const double derivative : out.dlogp) maximum = std::max(maximum, std::abs(derivative));
    EXPECT_EQ(maximum == 0, loss.advantage_is_all()) << names_of(SurrogateKind{})[i];
  }
  EXPECT_FALSE(GrpoLoss{.beta = 0.1}.advantage_is_all());
  EXPECT_FALSE(GrpoLoss{.entropy_coef = 0.1}.advantage_is_all());
  EXPECT_FALSE(GrpoLoss{.top_entropy_quantile = 0.5}.advantage_is_all())
      << "its entropies are part of the quantile";
  EXPECT_TRUE(GrpoLoss{.correction = {.weight = Over::token}}.advantage_is_all());
}

TEST(Kl, StraightThroughEstimatorsHaveTheGradientOfK2) {
  const auto derivative = [](KlEstimator e, double at) {
    const Expr x = engine::loss::variable({at});
    return gradients(sum(kl(e, x)), std::span(&x, 1))[0][0];
  };
  for (const double x : {0.3, -1.5}) {
    EXPECT_NEAR(derivative(KlEstimator::k1_plus, x), x, 1e-12);
    EXPECT_NEAR(derivative(KlEstimator::k3_plus, x), x, 1e-12);
    EXPECT_NEAR(kl(KlEstimator::k3_plus, x).value(), kl(KlEstimator::k3, x).value(), 1e-12);
    EXPECT_NEAR(kl(KlEstimator::k1_plus, x).value(), x, 1e-12);
  }
}

TEST(Kl, IsHeldAsEachToolHoldsIt) {
  EXPECT_EQ(kl(KlEstimator::k3, -30, KlClamp::verl).value(), 10);
  EXPECT_EQ(kl(KlEstimator::k3, 30, KlClamp::verl).value(), 10);
  EXPECT_EQ(kl(KlEstimator::k1, 30, KlClamp::verl).value(), 30);
  EXPECT_EQ(kl(KlEstimator::k1, -30, KlClamp::openrlhf).value(), -10);
  EXPECT_EQ(kl(KlEstimator::k2, 30, KlClamp::openrlhf).value(), 10);
  EXPECT_NEAR(kl(KlEstimator::k3, 0.3, KlClamp::verl).value(), kl(KlEstimator::k3, 0.3).value(),
              1e-15);
}

TEST(Kl, EstimatorsHaveThePublishedValues) {
  const auto value = [](KlEstimator e, double x) { return kl(e, x).value(); };
  EXPECT_NEAR(value(KlEstimator::k1, .3), .3, 1e-9);
  EXPECT_NEAR(value(KlEstimator::k2, .3), .045, 1e-9);
  EXPECT_NEAR(value(KlEstimator::k3, .3), .0408182207, 1e-9);
  EXPECT_NEAR(value(KlEstimator::k1, -1.5), -1.5, 1e-9);
  EXPECT_NEAR(value(KlEstimator::abs, -1.5), 1.5, 1e-9);
  EXPECT_NEAR(value(KlEstimator::k2, -1.5), 1.125, 1e-9);
  EXPECT_NEAR(value(KlEstimator::k3, -1.5), 1.9816890703, 1e-9);
}

TEST(GrpoLoss, NonsenseIsRefused) {
  EXPECT_FALSE(accepted(GrpoLoss{.surrogate = {.clip_low = 1.5}}));
  EXPECT_FALSE(accepted(GrpoLoss{.surrogate = {.clip_high = -0.1}}));
  EXPECT_FALSE(accepted(GrpoLoss{.surrogate = {.delta = 1.1}}));
  EXPECT_FALSE(accepted(GrpoLoss{.beta = -1}));
  EXPECT_FALSE(accepted(GrpoLoss{.temperature = 0}));
  EXPECT_TRUE(accepted(GrpoLoss{}));
}

TEST(GrpoLoss, AnUpdateThatTrainsNothingHasLossZero) {
  PublishedGrpo p;
  p.b.mask.assign(p.b.tokens.size(), 0);
  for (const auto aggregation : {Aggregation::sequence, Aggregation::token_local,
                                 Aggregation::token_global, Aggregation::constant}) {
    set_constants(p.b, aggregation, 0, 8);
    EXPECT_EQ(p(GrpoLoss{.aggregation = aggregation}), 0);
  }
}

TEST(GrpoLoss, WithoutAdvantagesOrReferenceIsABug) {
  PublishedGrpo p;
  p.b.count = 7;
  EXPECT_THROW(p(GrpoLoss{.beta = 0.1}), Bug);
  p.b.advantage.clear();
  EXPECT_THROW(p(GrpoLoss{}), Bug);
}

}  // namespace
}  // namespace troupe::algorithms
