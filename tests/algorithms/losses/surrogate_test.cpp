// The surrogates on the published inputs, in float64: numbers computed independently, to 1e-9; and
// the gradients of those with constant weights.
#include "algorithms/losses/surrogate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "algorithms/losses/averaging.h"
#include "algorithms/losses/grpo_loss.h"
#include "algorithms/losses/kl.h"
#include "algorithms/losses/ratio.h"
#include "tests/algorithms/losses/cases.h"

namespace troupe::algorithms {
namespace {

using namespace troupe::test;
using Kind = SurrogateKind;

struct PublishedSurrogates {
  Experience b;
  std::vector<double> logp = with_prompt_token({{-1, -.5, -2, -.7}, {-.2, -1.5, -.9}});
  std::vector<double> old = with_prompt_token({{-1.2, -.5, -1.5, -.9}, {-.6, -1.2, -.9}});
  std::vector<double> advantage = with_prompt_token({{1, 1, 1, 1}, {-.5, -.5, -.5}});
  PublishedSurrogates() {
    b.append({1, 2, 3, 4, 5}, {0, 1, 1, 1, 1});
    b.append({1, 2, 3, 4}, {0, 1, 1, 1});
  }
  Expr tokens(const Surrogate& surrogate, RatioLevel level, const Expr& now) const {
    Report report;
    return surrogate({now, log_ratio(level, now, old, b, 0), advantage, {}}, b, report);
  }
  double average(const Expr& losses, Aggregation aggregation) {
    set_constants(b, aggregation, 7, 8);
    return averaged(aggregation, losses, b).value();
  }
  // The columns of the table: seq-mean, token-mean, seq-mean-token-sum, dr_grpo.
  void expect(const Expr& losses, const std::vector<double>& expected) {
    EXPECT_NEAR(average(losses, Aggregation::sequence), expected[0], 1e-9);
    EXPECT_NEAR(average(losses, Aggregation::token_local), expected[1], 1e-9);
    EXPECT_NEAR(average(losses, Aggregation::token_global), expected[1], 1e-9);
    EXPECT_NEAR(average(losses, Aggregation::sequence_sum), expected[2], 1e-9);
    EXPECT_NEAR(average(losses, Aggregation::token_sum), expected[2] * 2, 2e-9);
    EXPECT_NEAR(average(losses, Aggregation::constant), expected[3], 1e-9);
  }
  void expect(const Surrogate& surrogate, RatioLevel level, const std::vector<double>& expected) {
    expect(tokens(surrogate, level, logp), expected);
  }
};

TEST(Surrogate, ClipHasThePublishedValues) {
  PublishedSurrogates().expect({.clip_high = .28}, RatioLevel::token,
                               {-0.2318482972, -0.3433462610, -1.2017119136, -0.1502139892});
  const auto values = PublishedSurrogates()
                          .tokens({.clip_high = .28}, RatioLevel::token, PublishedSurrogates().logp)
                          .values();
  const std::vector<double> expected{
      0, -1.2214027582, -1, -.6065306597, -1.2214027582, 0, .7459123488, .4, .5};
  for (const std::size_t t : {1, 2, 3, 4, 6, 7, 8})
    EXPECT_NEAR(values[t], expected[t], 1e-9) << "token " << t;
}

TEST(Surrogate, TwoSidedClipHasThePublishedValues) {
  PublishedSurrogates().expect({.clip_high = .28, .delta = 1.4}, RatioLevel::token,
                               {-0.2395003553, -0.3499051680, -1.2246680880, -0.1530835110});
}

TEST(Surrogate, CispoHasThePublishedValuesOfBothTools) {
  PublishedSurrogates().expect({.kind = Kind::cispo, .clip_high = 5}, RatioLevel::token,
                               {0.2812147285, 0.3763785533, 1.3173249365, 0.1646656171});
  PublishedSurrogates().expect({.kind = Kind::cispo_band, .clip_high = .28}, RatioLevel::token,
                               {0.3257147528, 0.4283406698, 1.4991923444, 0.1873990431});
}

TEST(Surrogate, SapoHasThePublishedValues) {
  PublishedSurrogates().expect({.kind = Kind::sapo}, RatioLevel::token,
                               {-0.5117443841, -0.7262285842, -2.5418000445, -0.3177250056});
}

TEST(Surrogate, GspoHasThePublishedValuesInBothForms) {
  for (const auto level : {RatioLevel::sequence, RatioLevel::sequence_token})
    PublishedSurrogates().expect({.clip_high = .28}, level,
                                 {-0.2291811776, -0.3357709968, -1.1751984889, -0.1468998111});
}

TEST(Surrogate, TheKlOfThePublishedInputsHasThePublishedValues) {
  PublishedSurrogates p;
  const Expr reference = with_prompt_token({{-1.1, -.7, -1.8, -.8}, {-.3, -1.4, -1}});
  p.expect(kl(KlEstimator::k3, Expr(p.logp) - reference),
           {0.0087003358, 0.0092363002, 0.0323270507, 0.0040408813});
}

double one_token(const Surrogate& surrogate, double ratio, double advantage) {
  Experience b;
  b.append({1, 2}, {0, 1});
  Report report;
  const std::vector<double> a{0, advantage}, x{0, std::log(ratio)};
  return surrogate({x, x, a, {}}, b, report).values()[1];
}

TEST(Surrogate, DualClipBoundsTheLossOfABadTokenThatBecameLikely) {
  EXPECT_NEAR(one_token({.dual_clip = 3}, 4, -.5), 1.5, 1e-12);
  EXPECT_NEAR(one_token({}, 4, -.5), 2, 1e-12);
  EXPECT_NEAR(one_token({.dual_clip = 3}, 2, -.5), 1, 1e-12);
  EXPECT_NEAR(one_token({.dual_clip = 3}, 4, .5), -.6, 1e-12);
}

TEST(Surrogate, GmpoTakesTheGeometricMeanOfClippedRatios) {
  PublishedSurrogates p;
  // Row 0 (A = 1): min(x, clip(x, -.2, .28)) of .2, 0, -.5, .2; row 1 (A = -.5): max(x, clip(x)) of
  // .4, -.3, 0.
  const double first = std::exp((.2 + 0 - .5 + .2) / 4), second = std::exp((.4 - .2 + 0) / 3);
  const auto values =
      p.tokens({.kind = Kind::gmpo, .clip_high = .28}, RatioLevel::token, p.logp).values();
  EXPECT_NEAR(values[1], -first, 1e-12);
  EXPECT_NEAR(values[8], .5 * second, 1e-12);
}

TEST(Surrogate, VespoWeighsAnAnswerByItsWholeRatio) {
  PublishedSurrogates p;
  const auto phi = [](double k, double lambda, double x) {
    return std::exp(lambda + k * x - lambda * std::exp(x));
  };
  const auto values = p.tokens({.kind = Kind::vespo}, RatioLevel::token, p.logp).values();
  EXPECT_NEAR(values[1], phi(2, 3, -.1) * 1, 1e-12);         // -phi A log pi, log pi = -1
  EXPECT_NEAR(values[7], phi(3, 2, .1) * -.5 * 1.5, 1e-12);  // A = -.5, log pi = -1.5
}

TEST(Surrogate, DroIsSquareInTheLogRatio) {
  PublishedSurrogates p;
  EXPECT_NEAR(p.tokens({.kind = Kind::dro, .dro_beta = .1}, RatioLevel::token, p.logp).values()[1],
              -(-1 - .05 * .04), 1e-12);
}

// Probabilities moved by .067, 0, -.088, .090 (A = 1) and .27, -.078, 0 (A = -.5).
TEST(Surrogate, DppoLeavesOutTokensWhoseProbabilityMovedTooFarOnTheSideOfTheAdvantage) {
  PublishedSurrogates p;
  const auto values = p.tokens({.kind = Kind::dppo_tv, .clip_low = .05, .clip_high = .08},
                               RatioLevel::token, p.logp)
                          .values();
  const std::vector<double> expected{
      0, std::exp(.2), .5, 2 * std::exp(-.5), 0, 0, -.1 * std::exp(.4), 0, -.45};
  for (std::size_t t = 1; t < expected.size(); ++t)
    EXPECT_NEAR(values[t], expected[t], 1e-12) << "token " << t;
  EXPECT_NEAR(one_token({.kind = Kind::dppo_tv, .clip_low = 1}, std::exp(5), -.5), .5 * 20 * 5,
              1e-12)
      << "a ratio counts at most 20 times";
}

// Covariances about A = 2.5 / 7 and log pi = -6.8 / 7: -.018, .303, -.661, .174; -.661, .453,
// -.061. The ratio of the .453 is clipped.
TEST(Surrogate, ClipCovLeavesOutTokensOfAMiddlingCovarianceThatAreNotClipped) {
  PublishedSurrogates p;
  p.b.sample_id = {3, 8};
  const auto plain = p.tokens({.clip_high = .28}, RatioLevel::token, p.logp).values();
  const auto zeros = [&](double ratio, double low, double high) {
    const Surrogate loss{.kind = Kind::clip_cov,
                         .clip_high = .28,
                         .cov_ratio = ratio,
                         .cov_low = low,
                         .cov_high = high};
    const auto values = p.tokens(loss, RatioLevel::token, p.logp).values();
    std::vector<std::size_t> out;
    for (const std::size_t t : {1, 2, 3, 4, 6, 7, 8}) {
      if (values[t] == 0) {
        out.push_back(t);
      } else {
        EXPECT_EQ(values[t], plain[t]) << "token " << t;
      }
    }
    return out;
  };
  EXPECT_EQ(zeros(.5, .1, 1), (std::vector<std::size_t>{2, 4}));
  EXPECT_EQ(zeros(.5, .1, .2), (std::vector<std::size_t>{4}));
  EXPECT_EQ(zeros(.5, .4, 1), (std::vector<std::size_t>{}))
      << "what is clipped already is not drawn";
  EXPECT_EQ(zeros(.15, .1, 1).size(), 1u);
  EXPECT_EQ(zeros(1e-4, .1, 1).size(), 1u) << "at least one";
}

TEST(Surrogate, KlCovHoldsTheTokensOfTheGreatestCovariance) {
  PublishedSurrogates p;
  p.b.sample_id = {3, 8};
  const auto values =
      p.tokens({.kind = Kind::kl_cov, .cov_ratio = .3, .cov_kl = 2}, RatioLevel::token, p.logp)
          .values();
  const std::vector<double> expected{0,
                                     -std::exp(.2),
                                     -1,
                                     -std::exp(-.5),
                                     -std::exp(.2),
                                     0,
                                     .5 * std::exp(.4),
                                     .5 * std::exp(-.3) + 2 * .3,
                                     .5};
  for (const std::size_t t : {1, 2, 3, 4, 6, 7, 8})
    EXPECT_NEAR(values[t], expected[t], 1e-12) << "token " << t;
}

// If a weight is a constant, the derivative by logp is minus that weight times the advantage.
TEST(Surrogate, NoGradientFlowsThroughAConstantWeight) {
  for (const auto kind : {Kind::cispo, Kind::cispo_band, Kind::vespo}) {
    PublishedSurrogates p;
    const Surrogate surrogate{.kind = kind, .clip_high = kind == Kind::cispo ? 1.3 : .28};
    const Expr now = engine::loss::variable(p.logp);
    const auto losses = p.tokens(surrogate, RatioLevel::token, now);
    const auto derivative = gradients(sum(where(p.b.mask, losses, 0.0)), std::span(&now, 1))[0];
    for (std::size_t t = 0; t < p.logp.size(); ++t)
      EXPECT_NEAR(derivative[t], p.b.mask[t] == 0 ? 0 : losses.values()[t] / p.logp[t], 1e-12)
          << "token " << t;
  }
}

TEST(Ratio, TheTwoSequenceFormsHaveTheSameGradientWhereTheAdvantageIsThatOfTheWholeAnswer) {
  PublishedSurrogates p;
  const Expr now = engine::loss::variable(p.logp);
  std::vector<std::vector<double>> gradients_FT;  // of the two forms
  for (const auto level : {RatioLevel::sequence, RatioLevel::sequence_token}) {
    p.b.count = p.b.scale = 1;
    const Expr loss =
        averaged(Aggregation::sequence, p.tokens({.clip_high = .28}, level, now), p.b);
    gradients_FT.push_back(gradients(loss, std::span(&now, 1))[0]);
  }
  for (std::size_t t = 0; t < p.logp.size(); ++t)
    EXPECT_NEAR(gradients_FT[0][t], gradients_FT[1][t], 1e-12);
}

TEST(Ratio, OfAWholeAnswerIsTheProductOverItsTokens) {
  const PublishedSurrogates p;
  const auto x = log_ratio(RatioLevel::sequence_sum, p.logp, p.old, p.b, 0).values();
  EXPECT_NEAR(x[1], -.1, 1e-12);
  EXPECT_NEAR(x[8], .1, 1e-12);
  EXPECT_NEAR(log_ratio(RatioLevel::token, p.logp, p.old, p.b, .3).values()[3], -.3, 1e-12);
  EXPECT_NEAR(log_ratio(RatioLevel::sequence, p.logp, p.old, p.b, .01).values()[8], .01, 1e-12);
}

TEST(Averaging, SequencesWithoutATrainedTokenCountOrNot) {
  PublishedSurrogates p;
  p.b.append({1, 2}, {0, 0});
  for (const auto aggregation :
       {Aggregation::sequence, Aggregation::sequence_sum, Aggregation::constant}) {
    set_constants(p.b, aggregation, 7, 8);
    EXPECT_EQ(p.b.count, 3);
    set_constants(p.b, aggregation, 7, 8, {.empty_sequences = false});
    EXPECT_EQ(p.b.count, 2);
  }
}

TEST(Surrogate, NonsenseIsRefused) {
  const auto valid = [](const Surrogate& surrogate) {
    return accepted(GrpoLoss{.surrogate = surrogate}).has_value();
  };
  EXPECT_FALSE(valid({.dual_clip = 0.5}));
  EXPECT_FALSE(valid({.kind = Kind::cispo, .dual_clip = 3}));
  EXPECT_FALSE(valid({.kind = Kind::sapo, .sapo_temperature_pos = 0}));
  EXPECT_FALSE(valid({.vespo_k_pos = -1}));
  EXPECT_TRUE(valid({.dual_clip = 3}));
}

}  // namespace
}  // namespace troupe::algorithms
