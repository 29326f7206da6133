// DPO's family on the published inputs: numbers computed independently in float64, to 1e-9.
#include "algorithms/losses/dpo_loss.h"

#include <gtest/gtest.h>

#include "engine/base/check.h"
#include "tests/algorithms/losses/cases.h"

namespace troupe::algorithms {
namespace {

using namespace troupe::test;
using Kind = DpoLoss::Kind;

// lp_w [-10, -12.5], lp_l [-14, -11], ref_w [-11, -12], ref_l [-13, -11.5], answers of 8, 10 and 12, 9 tokens; pairs interleaved.
struct Published {
  Experience b;
  std::vector<double> logp;
  Published() {
    const std::vector<std::size_t> lengths{8, 12, 10, 9};
    const std::vector<double> now{-10, -14, -12.5, -11};
    const std::vector<float> reference{-11, -13, -12, -11.5};
    for (std::size_t n = 0; n < lengths.size(); ++n) {
      std::vector<float> mask(lengths[n] + 1, 1);
      mask[0] = 0;
      b.append(std::vector<std::int32_t>(lengths[n] + 1, 1), mask);
      logp.resize(b.tokens.size(), 0);
      b.reference_logp.resize(b.tokens.size(), 0);
      logp.back() = now[n], b.reference_logp.back() = reference[n];
    }
    b.unit = 2, b.count = 2;
  }
  double loss(const DpoLoss& loss, Report& report) const { return slopes_of(loss, logp, std::vector<double>(logp.size()), b, report).loss; }
};

TEST(DpoLoss, HasThePublishedValues) {
  const Published p;
  const auto expect = [&](Kind kind, double smoothing, double first, double second) {
    Report report;
    const DpoLoss loss{.kind = kind, .label_smoothing = smoothing};
    ASSERT_TRUE(loss.validate());
    const auto name = names_of(kind)[static_cast<std::size_t>(kind)];
    EXPECT_NEAR(p.loss(loss, report), (first + second) / 2, 1e-9) << name;
    const engine::loss::Expr c = std::vector<double>{1, -0.5}, r = std::vector<double>{-1, 0.5};
    const auto pairs = loss.per_pair(c, r, std::vector<double>{8, 10}, std::vector<double>{12, 9}).values();
    EXPECT_NEAR(pairs[0], first, 1e-9) << name;
    EXPECT_NEAR(pairs[1], second, 1e-9) << name;
  };
  expect(Kind::sigmoid, 0, 0.5981388694, 0.7443966601);
  expect(Kind::hinge, 0, 0.8, 1.1);
  expect(Kind::ipo, 0, 22.9600694444, 26.0666975309);
  expect(Kind::ipo_sum, 0, 9.0, 36.0);
  expect(Kind::exo_pair, 1e-3, 2.4220146207, 2.9350042708);
  expect(Kind::nca_pair, 0, 1.3387933201, 1.4119192960);
  expect(Kind::robust, 0.1, 0.5731388694, 0.7568966601);
  expect(Kind::cdpo, 0.1, 0.6181388694, 0.7343966601);
  expect(Kind::bco_pair, 0, 1.2887933201, 1.4369192960);
  expect(Kind::sppo_hard, 0, 32.0, 60.5);
  expect(Kind::apo_zero, 0, 0.9500416250, 1.0249947930);
  expect(Kind::apo_down, 0, 0.9751451902, 1.0124817910);
  expect(Kind::discopop, 0, 0.8147631411, 0.7874020058);
  expect(Kind::sigmoid_norm, 0, 0.6827847664, 0.6984388857);
}

TEST(DpoLoss, ReportsWhatTrlReports) {
  const Published p;
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
  EXPECT_FALSE(DpoLoss{.label_smoothing = 0.1}.validate());
  EXPECT_NE(DpoLoss{.label_smoothing = 0.1}.validate().error().what.find("cdpo or robust"), std::string::npos);
  EXPECT_FALSE((DpoLoss{.kind = Kind::robust, .label_smoothing = 0.5}.validate()));
  EXPECT_FALSE(DpoLoss{.kind = Kind::exo_pair}.validate());
  EXPECT_FALSE(DpoLoss{.beta = 0}.validate());
  EXPECT_FALSE((DpoLoss{.kind = Kind::discopop, .discopop_tau = 0}.validate()));
}

TEST(DpoLoss, WithoutAReferenceIsABug) {
  Published p;
  p.b.reference_logp.clear();
  Report report;
  EXPECT_THROW(p.loss(DpoLoss{}, report), Bug);
}

}  // namespace
}  // namespace troupe::algorithms
