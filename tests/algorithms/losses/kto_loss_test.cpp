// KTO on the published inputs: numbers computed independently in float64, to 1e-9.
#include "algorithms/losses/kto_loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/errors/check.h"
#include "tests/algorithms/losses/cases.h"

namespace troupe::algorithms {
namespace {

using namespace troupe::test;

// The loss of one answer with log-ratio u and one trained token.
double one(double u, bool desirable, const KtoLoss& loss, double z, Report& report) {
  Experience b;
  b.append({1, 1}, {0, 1});
  b.reference_logp = {0, -3};
  b.label = {desirable ? 1.0f : 0.0f};
  b.count = 1;
  b.scale = z;
  return slopes_of(loss, {0, u - 3}, {0, 0}, b, report).loss;
}

TEST(KtoLoss, HasThePublishedValues) {
  Report report;
  EXPECT_NEAR(one(1, true, {}, 0.2, report), 0.4800106598, 1e-9);
  EXPECT_NEAR(one(-0.5, true, {}, 0.2, report), 0.5174928577, 1e-9);
  EXPECT_NEAR(one(-1, false, {}, 0.2, report), 0.4700359482, 1e-9);
  EXPECT_NEAR(one(0.5, false, {}, 0.2, report), 0.5074994376, 1e-9);
}

TEST(KtoLoss, WithoutPairsOfApoHasNoKl) {
  const KtoLoss apo{.kind = KtoLossKind::apo_zero_unpaired};
  Report report;
  EXPECT_NEAR(one(1, true, apo, 7, report), 1 / (1 + std::exp(0.1)), 1e-12);
  EXPECT_NEAR(one(1, false, apo, 7, report), 1 / (1 + std::exp(-0.1)), 1e-12);
  EXPECT_EQ(report.values().at("kl"), 0);
}

TEST(KtoLoss, WeighsTheTwoKindsOfAnswers) {
  const KtoLoss weighted{.desirable_weight = 1.5, .undesirable_weight = 0.25};
  Report report;
  EXPECT_NEAR(one(1, true, weighted, 0.2, report), 1.5 * 0.4800106598, 1e-9);
  EXPECT_NEAR(one(-1, false, weighted, 0.2, report), 0.25 * 0.4700359482, 1e-9);
}

TEST(KtoLoss, ReportsEachKindOfAnswerByItself) {
  Report report;
  one(1, true, {}, 0.2, report);
  EXPECT_EQ(report.values().count("rewards/rejected"), 0u);
  one(-1, false, {}, 0.2, report);
  one(0.5, false, {}, 0.2, report);
  EXPECT_NEAR(report.values().at("rewards/chosen"), 0.1, 1e-12);
  EXPECT_NEAR(report.values().at("rewards/rejected"), 0.1 * -0.25, 1e-12);
  EXPECT_NEAR(report.values().at("kl"), 0.2, 1e-12);
}

TEST(KtoLoss, MeasuresTheKlOfMismatchedPairs) {
  Experience b;
  b.append({1, 1, 1}, {0, 1, 1});
  b.append({1, 1}, {0, 1});
  EXPECT_NEAR(mismatched_kl(b, {9, 0.5f, 0.25f, 9, 0.25f}, {0, 0, 0, 0, 0}), 0.5, 1e-12);
  EXPECT_EQ(mismatched_kl(b, {0, -1, 0, 0, 0}, {0, 0, 0, 0, 0}), 0);
  EXPECT_EQ(mismatched_kl(Experience{}, {}, {}), 0);
}

TEST(KtoLoss, RefusesNonsense) {
  EXPECT_FALSE(accepted(KtoLoss{.beta = 0}));
  EXPECT_FALSE(accepted(KtoLoss{.desirable_weight = 0}));
  EXPECT_FALSE(accepted(KtoLoss{.undesirable_weight = -1}));
  Experience b;
  b.append({1, 1}, {0, 1});
  b.count = 1;
  Report report;
  EXPECT_THROW(slopes_of(KtoLoss{}, {0, -1}, {0, 0}, b, report), Bug);
}

}  // namespace
}  // namespace troupe::algorithms
