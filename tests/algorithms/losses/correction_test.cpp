// Importance weights, filters and the proximal policy: published numbers (float64, computed
// independently) and each tool's form of them.
#include "algorithms/losses/correction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "algorithms/losses/grpo_loss.h"
#include "algorithms/losses/token_masks.h"
#include "engine/base/errors/check.h"
#include "tests/algorithms/losses/cases.h"

namespace troupe::algorithms {
namespace {

using namespace troupe::test;

// One answer whose old - rollout is [.1, 0, -.1, 1].
struct PublishedCorrections {
  Experience b;
  std::vector<double> proximal;
  PublishedCorrections() {
    b.append({1, 2, 3, 4, 5}, {0, 1, 1, 1, 1});
    b.rollout_logp = {0, -1, -2, -.5f, -1.5f};
    const std::vector<double> difference{0, .1, 0, -.1, 1};
    for (std::size_t t = 0; t < 5; ++t)
      proximal.push_back(static_cast<double>(b.rollout_logp[t]) + difference[t]);
  }
  void expect(const Correction& correction, const std::vector<double>& expected) const {
    ASSERT_TRUE(correction.validate("grpo"));
    Report report;
    const auto found = correction(proximal, b.rollout_logp, b, report);
    for (std::size_t t = 0; t < 4; ++t)
      EXPECT_NEAR(found[t + 1], expected[t], 1e-9) << "token " << t;
  }
};

constexpr double low = 0.9048374180, high = 2.7182818285, first = 1.1051709181,
                 geometric = 1.2840254167;

TEST(Correction, WeightsHaveThePublishedValues) {
  const PublishedCorrections p;
  p.expect({.weight = Over::token, .high = 0}, {first, 1, low, high});
  p.expect({.weight = Over::token, .high = 2}, {first, 1, low, 2});
  p.expect({.weight = Over::sequence, .high = 0}, {high, high, high, high});
  p.expect({.weight = Over::geometric, .high = 0}, {geometric, geometric, geometric, geometric});
}

TEST(Correction, AWeightOutOfItsBoundsIsCutOrZeroOrKept) {
  const PublishedCorrections p;
  p.expect({.weight = Over::token, .outside = Outside::mask, .low = 0.95, .high = 2},
           {first, 1, 0, 0});
  p.expect({.weight = Over::token, .outside = Outside::truncate, .low = 0.95, .high = 2},
           {first, 1, 0.95, 2});
  p.expect({.weight = Over::token, .outside = Outside::keep, .low = 0.95, .high = 2},
           {first, 1, low, high});
  p.expect({.weight = Over::sequence, .outside = Outside::mask, .high = 2}, {0, 0, 0, 0});
  p.expect({.weight = Over::sequence, .outside = Outside::truncate, .high = 2}, {2, 2, 2, 2});
}

TEST(Correction, AFilterLeavesWholeSamplesOut) {
  const PublishedCorrections p;
  p.expect({.filter = FilterOver::geometric, .filter_low = 0.5, .filter_high = 1.2}, {0, 0, 0, 0});
  p.expect({.filter = FilterOver::geometric, .filter_low = 0.5, .filter_high = 1.3}, {1, 1, 1, 1});
  p.expect({.weight = Over::token,
            .outside = Outside::keep,
            .filter = FilterOver::geometric,
            .filter_low = 0.5,
            .filter_high = 1.3},
           {first, 1, low, high});  // OpenRLHF's seq-mask-tis
}

// verl's rollout_rs: token_k2, seq_sum_k2, seq_mean_k2, seq_max_k2, and k3; the bound a little
// above the distance, or below.
TEST(Correction, AFilterByADistanceHasAnUpperBoundAlone) {
  const PublishedCorrections p;
  const double k2 = 0.5, k3 = std::exp(1.0) - 2, others2 = 0.005 + 0.005,
               others3 = std::exp(.1) + std::exp(-.1) - 2;
  for (const auto& [by, last, others] :
       {std::tuple(FilterBy::k2, k2, others2), {FilterBy::k3, k3, others3}}) {
    const auto filtered = [&](FilterOver over, double maximum) {
      return Correction{.filter = over, .filter_by = by, .filter_high = maximum};
    };
    p.expect(filtered(FilterOver::token, last - 1e-6), {1, 1, 1, 0});
    p.expect(filtered(FilterOver::token, last + 1e-6), {1, 1, 1, 1});
    for (const auto& [over, whole] : {std::pair(FilterOver::sequence, last + others),
                                      {FilterOver::geometric, (last + others) / 4},
                                      {FilterOver::greatest, last}}) {
      p.expect(filtered(over, whole - 1e-6), {0, 0, 0, 0});
      p.expect(filtered(over, whole + 1e-6), {1, 1, 1, 1});
    }
  }
  Report report;
  Correction{.filter = FilterOver::token, .filter_by = FilterBy::k2, .filter_high = 0.1}(
      p.proximal, p.b.rollout_logp, p.b, report);
  EXPECT_NEAR(report.values().at("sampling/filtered_ratio"), 0.25, 1e-12);
}

TEST(Correction, ReportsTheDistanceOfTheTwo) {
  const PublishedCorrections p;
  Report report;
  Correction{.weight = Over::token, .high = 2}(p.proximal, p.b.rollout_logp, p.b, report);
  const auto values = report.values();
  EXPECT_NEAR(values.at("sampling/sampling_logp_difference/mean"), 0.3, 1e-9);
  EXPECT_NEAR(values.at("sampling/sampling_logp_difference/max"), 1, 1e-9);
  EXPECT_NEAR(values.at("sampling/importance_sampling_ratio/min"), low, 1e-9);
  EXPECT_NEAR(values.at("sampling/importance_sampling_ratio/max"), 2, 1e-9);
  EXPECT_NEAR(values.at("sampling/is_oob_ratio"), 0.25, 1e-9);
}

TEST(Correction, NonsenseIsRefused) {
  const auto valid = [](Correction correction) {
    return accepted(GrpoLoss{.correction = std::move(correction)}).has_value();
  };
  EXPECT_TRUE(valid({}));
  EXPECT_FALSE(valid({.low = 2, .high = 1}));
  EXPECT_FALSE(valid({.low = -1}));
  EXPECT_FALSE(valid({.filter = FilterOver::token}));
  EXPECT_FALSE(valid({.filter = FilterOver::greatest}));
  EXPECT_FALSE(valid({.filter = FilterOver::token, .filter_by = FilterBy::k2, .filter_high = 0}));
  EXPECT_FALSE(valid({.filter = FilterOver::sequence, .filter_low = 2, .filter_high = 2}));
  const PublishedCorrections p;
  Report report;
  EXPECT_THROW(Correction{.weight = Over::token}(p.proximal, {}, p.b, report), Bug);
}

TEST(OffPolicyMask, LeavesOutBadAnswersThatBecameUnlikely) {
  Experience b;
  for (int n = 0; n < 3; ++n) b.append({1, 2, 3}, {0, 1, 1});
  b.rollout_logp = {0, -1, -1, 0, -1, -1, 0, -1, -1};
  b.advantage = {-1, -1, -1, 1, 1, 1, -1, -1, -1};
  const std::vector<double> logp{0, -1.5, -1.3, 0, -9, -9, 0, -1.1, -1.2};  // mean drift .4, 8, .15
  const auto kept = off_policy_mask(logp, b.rollout_logp, b, 0.2);
  EXPECT_EQ(kept, (std::vector<double>{0, 0, 0, 1, 1, 1, 1, 1, 1}));
}

TEST(Proximal, HasThePublishedValues) {
  const double share = proximal_share(5, 3);
  EXPECT_EQ(share, 0.5);
  EXPECT_NEAR(proximal_logp(Proximal::loglinear, -1.3, -1, share), -1.15, 1e-9);
  EXPECT_NEAR(proximal_logp(Proximal::linear, -1.3, -1, share), -1.1387919361, 1e-9);
  EXPECT_EQ(proximal_share(3, 3), 0);
  EXPECT_EQ(proximal_share(4, 3), 0);
}

TEST(EntropyMask, KeepsTheTokensAboveTheQuantile) {
  EXPECT_DOUBLE_EQ(quantile({3, 1, 2, 4}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({3, 1, 2, 4}, 1), 4);
  EXPECT_EQ(quantile({}, 0.5), 0);
  const std::vector<double> entropy{9, 0.1, 2, 0.3, 1, 0.2};
  const std::vector<float> mask{0, 1, 1, 1, 1, 1};
  EXPECT_EQ(top_entropy_mask(entropy, mask, 0.4),
            (std::vector<double>{0, 0, 1, 0, 1, 0}));  // the 0.6-quantile lies between .3 and 1
}

}  // namespace
}  // namespace troupe::algorithms
