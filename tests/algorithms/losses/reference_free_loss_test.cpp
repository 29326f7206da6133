// SimPO, CPO and ORPO on the published inputs: numbers computed independently in float64, to 1e-9.
#include <gtest/gtest.h>

#include <cmath>

#include "algorithms/losses/cpo_loss.h"
#include "algorithms/losses/orpo_loss.h"
#include "algorithms/losses/simpo_loss.h"
#include "tests/algorithms/losses/cases.h"

namespace troupe::algorithms {
namespace {

using namespace troupe::test;
using engine::loss::sum;

// lp_w [-10, -12.5], lp_l [-14, -11] of answers of 8, 10 and 12, 9 tokens; pairs interleaved.
struct PublishedReferenceFree {
  Experience b;
  std::vector<double> logp;
  PublishedReferenceFree() {
    const std::vector<std::size_t> lengths{8, 12, 10, 9};
    const std::vector<double> total{-10, -14, -12.5, -11};
    for (std::size_t n = 0; n < lengths.size(); ++n) {
      std::vector<float> mask(lengths[n] + 1, 1);
      b.append(std::vector<std::int32_t>(lengths[n] + 1, 1), mask);
      logp.push_back(0);
      logp.insert(logp.end(), lengths[n], total[n] / static_cast<double>(lengths[n]));
    }
    b.sequences_per_group = 2;
    b.count = 2;
    set_nll_tokens(b);
  }
  double loss(const AnyLoss& loss, Report& report) const {
    return slopes_of(loss, logp, std::vector<double>(logp.size()), b, report).loss;
  }
};

Two averages() {
  return {std::vector<double>{-10.0 / 8, -1.25}, std::vector<double>{-14.0 / 12, -11.0 / 9}};
}

TEST(SimpoLoss, HasThePublishedValues) {
  const PublishedReferenceFree p;
  Report report;
  EXPECT_NEAR(p.loss(SimpoLoss{.beta = 2, .gamma_beta_ratio = 0.25}, report), 1.0450278945, 1e-9);
  EXPECT_NEAR(p.loss(SimpoLoss{.beta = 0.1, .gamma_beta_ratio = 5}, report), 0.9775396219, 1e-9);
  const auto original =
                 SimpoLoss{.beta = 2, .gamma_beta_ratio = 0.25}.per_pair(averages()).values(),
             trl = SimpoLoss{.beta = 0.1, .gamma_beta_ratio = 5}.per_pair(averages()).values();
  EXPECT_NEAR(original[0], 1.0810367535, 1e-9);
  EXPECT_NEAR(original[1], 1.0090190356, 1e-9);
  EXPECT_NEAR(trl[0], 0.9792722996, 1e-9);
  EXPECT_NEAR(trl[1], 0.9758069443, 1e-9);
}

// MindSpeed-LLM's values for averages -2.5 and -2.0, gamma_beta_ratio 1.4, beta 2.5.
TEST(SimpoLoss, HasMindSpeedsUnitValues) {
  const Two x{std::vector<double>{-2.5}, std::vector<double>{-2.0}};
  const auto loss = [&](SimpoLossKind kind) {
    return SimpoLoss{.kind = kind, .beta = 2.5, .gamma_beta_ratio = 1.4}.per_pair(x).values()[0];
  };
  EXPECT_NEAR(loss(SimpoLossKind::sigmoid), 4.7586145, 5e-8);
  EXPECT_NEAR(loss(SimpoLossKind::hinge), 5.75, 1e-12);
  EXPECT_NEAR(loss(SimpoLossKind::ipo), 4.41, 1e-12);
}

TEST(SimpoLoss, BendsRewardsAsAlphaPoDoes) {
  const PublishedReferenceFree p;
  Report report;
  const auto bent = [](double x) { return (1 - std::exp(-0.25 * x)) / 0.25; };
  const auto pair = [&](double w, double l) {
    return std::log1p(std::exp(-2 * (bent(w) - bent(l) - 0.25)));
  };
  EXPECT_NEAR(p.loss(SimpoLoss{.alpha = 0.25}, report),
              (pair(-1.25, -14.0 / 12) + pair(-1.25, -11.0 / 9)) / 2, 1e-12);
  EXPECT_NEAR(report.values().at("rewards/chosen"), 2 * bent(-1.25), 1e-12);
  EXPECT_NEAR(report.values().at("logps/chosen"), -1.25, 1e-12);
}

TEST(SimpoLoss, HasNoLikelihoodTermUnlessAsked) {
  const PublishedReferenceFree p;
  Report without, with;
  const double plain = p.loss(SimpoLoss{}, without);
  EXPECT_EQ(without.values().count("nll_loss"), 0u);
  EXPECT_NEAR(p.loss(SimpoLoss{.nll_weight = 0.5}, with), plain + 0.5 * 22.5 / 18, 1e-12);
  EXPECT_NEAR(with.values().at("nll_loss"), 22.5 / 18, 1e-12);
}

TEST(SimpoLoss, RefusesWhatItWouldNotUse) {
  EXPECT_FALSE(accepted(SimpoLoss{.kind = SimpoLossKind::hinge, .label_smoothing = 0.1}));
  EXPECT_FALSE(accepted(SimpoLoss{.label_smoothing = 0.5}));
  EXPECT_FALSE(accepted(SimpoLoss{.beta = 0}));
  EXPECT_FALSE(accepted(SimpoLoss{.gamma_beta_ratio = -1}));
  EXPECT_FALSE(accepted(SimpoLoss{.nll_weight = -1}));
}

TEST(CpoLoss, HasThePublishedValues) {
  const PublishedReferenceFree p;
  Report report;
  EXPECT_NEAR(p.loss(CpoLoss{.nll_weight = 0}, report), 0.6419861501, 1e-9);
  const auto pairs =
      CpoLoss{}.per_pair({std::vector<double>{-10, -12.5}, std::vector<double>{-14, -11}}).values();
  EXPECT_NEAR(pairs[0], 0.5130152524, 1e-9);
  EXPECT_NEAR(pairs[1], 0.7709570478, 1e-9);
  EXPECT_NEAR(p.loss(CpoLoss{}, report), 0.6419861501 + 22.5 / 18, 1e-9);
}

TEST(CpoLoss, StatesWhichOfItsKeysIsWrong) {
  EXPECT_EQ(accepted(CpoLoss{.beta = -1}).error().what.substr(0, 9), "cpo.beta:");
  EXPECT_FALSE(accepted(CpoLoss{.kind = CpoLossKind::ipo, .label_smoothing = 0.1}));
}

TEST(OrpoLoss, HasThePublishedValues) {
  const PublishedReferenceFree p;
  Report report;
  const auto odds = log_odds(averages()).values();
  EXPECT_NEAR(odds[0], -0.1188531782, 1e-9);
  EXPECT_NEAR(odds[1], -0.0391527902, 1e-9);
  EXPECT_NEAR(p.loss(OrpoLoss{}, report), 0.0733626836 + 22.5 / 18, 1e-9);
  EXPECT_NEAR(report.values().at("log_odds_chosen"), (-0.1188531782 - 0.0391527902) / 2, 1e-9);
  EXPECT_NEAR(report.values().at("log_odds_ratio"), -0.733626836, 1e-8);
}

// The mask also selects the prompt's token: it counts in the likelihood, not in the odds.
TEST(OrpoLoss, KeepsPromptsOutOfTheOdds) {
  const PublishedReferenceFree p;
  PublishedReferenceFree with_prompt = p;
  auto& b = with_prompt.b;
  b.answer = b.mask;
  for (const std::size_t n : {0u, 2u}) b.answer[static_cast<std::size_t>(b.offsets[n]) + 1] = 0;
  set_nll_tokens(b);
  Report report, expected;
  PublishedReferenceFree shorter = p;
  for (const std::size_t n : {0u, 2u})
    shorter.b.mask[static_cast<std::size_t>(b.offsets[n]) + 1] = 0;
  set_nll_tokens(shorter.b);
  with_prompt.loss(OrpoLoss{}, report);
  shorter.loss(OrpoLoss{}, expected);
  EXPECT_EQ(report.values().at("log_odds_chosen"), expected.values().at("log_odds_chosen"));
  EXPECT_NEAR(report.values().at("nll_loss"), 22.5 / 18, 1e-12);
}

}  // namespace
}  // namespace troupe::algorithms
