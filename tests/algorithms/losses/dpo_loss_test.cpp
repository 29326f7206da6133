// DPO's family on the published inputs: numbers computed independently in float64, to 1e-9.
#include "algorithms/losses/dpo_loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/errors/check.h"
#include "tests/algorithms/losses/cases.h"

namespace troupe::algorithms {
namespace {

using namespace troupe::test;

// lp_w [-10, -12.5], lp_l [-14, -11], ref_w [-11, -12], ref_l [-13, -11.5], answers of 8, 10 and
// 12, 9 tokens; pairs interleaved.
struct PublishedDpo {
  Experience b;
  std::vector<double> logp;
  PublishedDpo() {
    const std::vector<std::size_t> lengths{8, 12, 10, 9};
    const std::vector<double> now{-10, -14, -12.5, -11};
    const std::vector<float> reference{-11, -13, -12, -11.5};
    for (std::size_t n = 0; n < lengths.size(); ++n) {
      std::vector<float> mask(lengths[n] + 1, 1);
      mask[0] = 0;
      b.append(std::vector<std::int32_t>(lengths[n] + 1, 1), mask);
      logp.resize(b.tokens.size(), 0);
      b.reference_logp.resize(b.tokens.size(), 0);
      logp.back() = now[n];
      b.reference_logp.back() = reference[n];
    }
    b.sequences_per_group = 2;
    b.count = 2;
  }
  double loss(const DpoLoss& loss, Report& report) const {
    return slopes_of(loss, logp, std::vector<double>(logp.size()), b, report).loss;
  }
};

DpoLoss::Terms published_terms() {
  const auto two = [](double first, double second) {
    return engine::loss::Expr(std::vector<double>{first, second});
  };
  return {
      {two(-10, -12.5), two(-14, -11)}, {two(-11, -12), two(-13, -11.5)}, {two(8, 10), two(12, 9)}};
}

using Divergence = DpoDivergence;

TEST(DpoLoss, HasThePublishedValues) {
  const PublishedDpo p;
  const auto expect = [&](DpoLossKind kind, double smoothing, double first, double second) {
    Report report;
    const DpoLoss loss{.kind = {kind}, .label_smoothing = smoothing};
    ASSERT_TRUE(loss.validate());
    const auto name = names_of(kind)[static_cast<std::size_t>(kind)];
    EXPECT_NEAR(p.loss(loss, report), (first + second) / 2, 1e-9) << name;
    const auto pairs = loss.per_pair(kind, published_terms()).values();
    EXPECT_NEAR(pairs[0], first, 1e-9) << name;
    EXPECT_NEAR(pairs[1], second, 1e-9) << name;
  };
  expect(DpoLossKind::sigmoid, 0, 0.5981388694, 0.7443966601);
  expect(DpoLossKind::hinge, 0, 0.8, 1.1);
  expect(DpoLossKind::ipo, 0, 22.9600694444, 26.0666975309);
  expect(DpoLossKind::ipo_sum, 0, 9.0, 36.0);
  expect(DpoLossKind::exo_pair, 1e-3, 2.4220146207, 2.9350042708);
  expect(DpoLossKind::nca_pair, 0, 1.3387933201, 1.4119192960);
  expect(DpoLossKind::robust, 0.1, 0.5731388694, 0.7568966601);
  expect(DpoLossKind::cdpo, 0.1, 0.6181388694, 0.7343966601);
  expect(DpoLossKind::bco_pair, 0, 1.2887933201, 1.4369192960);
  expect(DpoLossKind::sppo_hard, 0, 32.0, 60.5);
  expect(DpoLossKind::aot, 0, 0.7443966601, 0.5981388694);
  expect(DpoLossKind::aot_unpaired, 0, 0.6684596480, 0.6684596480);
  expect(DpoLossKind::apo_zero, 0, 0.9500416250, 1.0249947930);
  expect(DpoLossKind::apo_down, 0, 0.9751451902, 1.0124817910);
  expect(DpoLossKind::discopop, 0, 0.8147631411, 0.7874020058);
  expect(DpoLossKind::sigmoid_norm, 0, 0.6827847664, 0.6984388857);
}

TEST(DpoLoss, OfOtherDivergencesHasThePublishedValues) {
  const PublishedDpo p;
  const auto expect = [&](Divergence divergence, double mean) {
    Report report;
    EXPECT_NEAR(p.loss(DpoLoss{.divergence = divergence}, report), mean, 1e-9)
        << names_of(divergence)[static_cast<std::size_t>(divergence)];
  };
  expect(Divergence::reverse_kl, 0.6712677647);
  expect(Divergence::forward_kl, 0.6645652561);
  expect(Divergence::js_divergence, 0.6814281540);
  expect(Divergence::alpha_divergence, 0.6696472420);
  Report report;
  EXPECT_NEAR(
      p.loss(DpoLoss{.divergence = Divergence::alpha_divergence, .divergence_alpha = 1}, report),
      0.6712677647, 1e-9);
}

// MindSpeed-LLM's values for pi_c -10, pi_r -12, ref_c -11, ref_r -11.5.
TEST(DpoLoss, HasMindSpeedsUnitValues) {
  const auto pair = [](const DpoLoss& loss, DpoLoss::Terms terms) {
    EXPECT_TRUE(loss.validate());
    return loss.per_pair(loss.kind.front(), terms).values().front();
  };
  const auto one = [](double x) { return engine::loss::Expr(std::vector<double>{x}); };
  const DpoLoss::Terms sums{{one(-10), one(-12)}, {one(-11), one(-11.5)}, {one(4), one(6)}};
  EXPECT_NEAR(pair({.kind = {DpoLossKind::cdpo}}, sums), 0.6209570, 5e-8);
  EXPECT_NEAR(pair({.kind = {DpoLossKind::cdpo}, .label_smoothing = 0.1}, sums), 0.6359570, 5e-8);
  EXPECT_NEAR(pair({.kind = {DpoLossKind::hinge}}, sums), 0.85, 1e-12);
  EXPECT_NEAR(pair({.kind = {DpoLossKind::ipo}}, sums), 21.7777778, 5e-8);
}

// (1 - sigmoid(0.1 (c - max(0, mean r)))) / 2 + (1 - sigmoid(0.1 (max(0, mean c) - r))) / 2 with
// mean c = 0.25, mean r = -0.25 -> 0.
TEST(DpoLoss, OfKtoPairsTakesTheKlOfTheOtherHalf) {
  const auto s = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto found = DpoLoss{}.per_pair(DpoLossKind::kto_pair, published_terms()).values();
  EXPECT_NEAR(found[0], 0.5 * (1 - s(0.1 * 1)) + 0.5 * (1 - s(0.1 * (0.25 + 1))), 1e-12);
  EXPECT_NEAR(found[1], 0.5 * (1 - s(0.1 * -0.5)) + 0.5 * (1 - s(0.1 * (0.25 - 0.5))), 1e-12);
}

TEST(DpoLoss, OfSeveralKindsIsTheirWeightedSum) {
  PublishedDpo p;
  set_nll_tokens(p.b);
  ASSERT_EQ(p.b.scale, 18);
  Report report;
  const double nll = (10 + 12.5) / 18;
  const DpoLoss mpo{.kind = {DpoLossKind::sigmoid, DpoLossKind::bco_pair, DpoLossKind::sft},
                    .weights = {0.8, 0.2, 1}};
  EXPECT_NEAR(p.loss(mpo, report), 0.8 * 0.6712677647 + 0.2 * 1.3628563081 + nll, 1e-9);
  EXPECT_NEAR(report.values().at("nll_loss"), nll, 1e-12);
  // MindSpeed's pref_ftx: the mean over answers of each one's mean
  const DpoLoss ftx{.kind = {DpoLossKind::sigmoid, DpoLossKind::sft},
                    .weights = {1, 0.5},
                    .nll_mean = NllMean::answer};
  EXPECT_NEAR(p.loss(ftx, report), 0.6712677647 + 0.5 * (10.0 / 8 + 12.5 / 10) / 2, 1e-9);
}

// The shorter answer of the first pair has 8 tokens; the rejected one has 12, of which the last one
// has all of the log-probability.
TEST(DpoLoss, DesensitizedToLengthWeighsTailsLess) {
  const PublishedDpo p;
  Report report;
  const double first = 1 - 0.5 * -1,
               second = 0.5 * -0.5 -
                        0.5;  // c - r; in the second pair the chosen answer is the longer one
  const auto loss = [](double delta) { return std::log1p(std::exp(-0.1 * delta)); };
  EXPECT_NEAR(p.loss(DpoLoss{.ld_alpha = 0.5}, report), (loss(first) + loss(second)) / 2, 1e-12);
  EXPECT_NEAR(report.values().at("logps/rejected"), (0.5 * -14 - 11) / 2, 1e-12);
}

// In slopes_of, log sum p^2 of token 1 is -0.4: the weight of a pair is exp(mean over y_w of (log p
// + 0.4) + the same of y_l).
TEST(DpoLoss, WithWeightsOfThePolicyHasTheirLossAndGradients) {
  const PublishedDpo p;
  Report report;
  const double w0 = std::exp(-10.0 / 8 + 0.4 - 14.0 / 12 + 0.4),
               w1 = std::exp(-12.5 / 10 + 0.4 - 11.0 / 9 + 0.4);
  const std::vector<double> none(p.logp.size());
  const auto plain = slopes_of(DpoLoss{}, p.logp, none, p.b, report),
             found = slopes_of(DpoLoss{.weighting = true}, p.logp, none, p.b, report);
  EXPECT_NEAR(found.loss, (w0 * 0.5981388694 + w1 * 0.7443966601) / 2, 1e-9);
  for (std::size_t t = 0; t < p.logp.size(); ++t)
    EXPECT_NEAR(found.dlogp[t],
                plain.dlogp[t] * (static_cast<std::int32_t>(t) < p.b.offsets[2] ? w0 : w1), 1e-12)
        << t;
}

TEST(DpoLoss, ReportsWhatTrlReports) {
  const PublishedDpo p;
  Report report;
  p.loss(DpoLoss{}, report);
  const auto values = report.values();
  EXPECT_NEAR(values.at("rewards/chosen"), 0.1 * 0.25, 1e-12);
  EXPECT_NEAR(values.at("rewards/rejected"), 0.1 * -0.25, 1e-12);
  EXPECT_NEAR(values.at("rewards/margins"), 0.1 * 0.5, 1e-12);
  EXPECT_EQ(values.at("rewards/accuracies"), 0.5);
  EXPECT_EQ(values.at("logps/chosen"), -11.25);
  EXPECT_EQ(values.at("logps/rejected"), -12.5);
}

TEST(DpoLoss, RefusesWhatItWouldNotUse) {
  const auto message = [](const DpoLoss& loss) {
    return accepted(loss) ? std::string() : accepted(loss).error().what;
  };
  EXPECT_NE(message({.label_smoothing = 0.1}).find("cdpo or robust"), std::string::npos);
  EXPECT_NE(message({.kind = {DpoLossKind::robust}, .label_smoothing = 0.5}), "");
  EXPECT_NE(message({.kind = {DpoLossKind::exo_pair}}), "");
  EXPECT_NE(message({.beta = 0}), "");
  EXPECT_NE(message({.kind = {DpoLossKind::discopop}, .discopop_tau = 0}), "");
  EXPECT_NE(message({.kind = {}}), "");
  EXPECT_NE(message({.kind = {DpoLossKind::sigmoid, DpoLossKind::sft}, .weights = {1}})
                .find("one for each of the 2 losses"),
            std::string::npos);
  EXPECT_NE(message({.kind = {DpoLossKind::sigmoid, DpoLossKind::sft}, .weights = {1, 0}}), "");
  EXPECT_NE(message({.ld_alpha = 1.5}), "");
  EXPECT_NE(message({.kind = {DpoLossKind::sigmoid, DpoLossKind::bco_pair},
                     .divergence = Divergence::js_divergence})
                .find("bco_pair"),
            std::string::npos);
  EXPECT_NE(message({.kind = {DpoLossKind::aot}, .weighting = true}).find("aot"),
            std::string::npos);
}

TEST(DpoLoss, AsksForTheWholeBatchWhereItsPairsAreMixed) {
  for (const DpoLossKind kind :
       {DpoLossKind::aot, DpoLossKind::aot_unpaired, DpoLossKind::kto_pair})
    EXPECT_TRUE(DpoLoss{.kind = {kind}}.needs().whole_batch);
  EXPECT_TRUE((DpoLoss{.kind = {DpoLossKind::sigmoid, DpoLossKind::sft}, .weighting = true}
                   .needs()
                   .whole_batch));
  EXPECT_FALSE((DpoLoss{.kind = {DpoLossKind::sigmoid, DpoLossKind::sft}}.needs().whole_batch));
  EXPECT_TRUE((DpoLoss{.weighting = true}.needs().collision));
}

TEST(DpoLoss, WithoutAReferenceIsABug) {
  PublishedDpo p;
  p.b.reference_logp.clear();
  Report report;
  EXPECT_THROW(p.loss(DpoLoss{}, report), Bug);
}

}  // namespace
}  // namespace troupe::algorithms
