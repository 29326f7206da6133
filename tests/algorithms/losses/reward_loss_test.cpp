// Losses of reward models on the published inputs, to 1e-9, and the properties of every loss, over
// scores instead of log-probabilities.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "algorithms/losses/orm_loss.h"
#include "algorithms/losses/prm_loss.h"
#include "engine/base/errors/check.h"
#include "tests/algorithms/losses/cases.h"

namespace troupe::algorithms {
namespace {

using namespace troupe::test;
using Columns = std::vector<std::vector<double>>;  ///< [C][T]

struct Scored {
  double loss = 0;
  Columns dscores;
};

Scored slopes_of_scores(const AnyLoss& loss, const Columns& scores, const Experience& b,
                        Report& report) {
  engine::loss::TokenStats now;
  for (const auto& column : scores) now.scores.push_back(engine::loss::variable(column));
  const Expr scalar = loss(now, b, report);
  return {scalar.value(), gradients(scalar, now.scores)};
}

// Sequences of these lengths with these scores at their last tokens; the other scores are
// arbitrary.
struct LastTokens {
  Experience b;
  Columns scores{{}};
  explicit LastTokens(const std::vector<double>& last) {
    for (std::size_t n = 0; n < last.size(); ++n) {
      std::vector<float> mask(3 + n, 0);
      mask.back() = 1;
      b.append(std::vector<std::int32_t>(mask.size(), 1), mask);
      scores[0].resize(b.tokens.size(), std::numeric_limits<double>::quiet_NaN());
      scores[0].back() = last[n];
    }
    b.sequences_per_group = 2;
    b.count = static_cast<double>(last.size()) / 2;
  }
  double loss(const OrmLoss& loss, Report& report) const {
    return slopes_of_scores(loss, scores, b, report).loss;
  }
};

TEST(OrmLoss, HasThePublishedValues) {
  LastTokens p({1.2, 0.4, -0.3, 0.5});
  Report report;
  EXPECT_NEAR(p.loss(OrmLoss{}, report), 0.7711006659, 1e-9);
  EXPECT_NEAR(p.loss(OrmLoss{.kind = OrmLossKind::log_exp}, report), 0.7711006659, 1e-9);
  EXPECT_NEAR(p.loss(OrmLoss{.center = 0.01}, report), 0.7841006659, 1e-9);
  EXPECT_NEAR(p.loss(OrmLoss{.center = 1}, report) - p.loss(OrmLoss{}, report), 1.3, 1e-9);
  p.b.label = {0.5, 0, 0, 0};
  EXPECT_NEAR(p.loss(OrmLoss{}, report), 0.8627279552, 1e-9);
  EXPECT_NEAR(p.loss(OrmLoss{.kind = OrmLossKind::log_exp}, report), 0.7711006659, 1e-9)
      << "log_exp knows no margin";
}

TEST(OrmLoss, HasMindSpeedsValue) {
  Report report;
  EXPECT_NEAR(LastTokens({1.2, 0.4}).loss(OrmLoss{}, report), 0.3711007,
              5e-8);  // published with seven digits
  EXPECT_NEAR(LastTokens({1.2, 0.4}).loss(OrmLoss{}, report), std::log1p(std::exp(-0.8)), 1e-12);
}

TEST(OrmLoss, ReportsWhatTrlReports) {
  Report report;
  LastTokens({1.2, 0.4, -0.3, 0.5}).loss(OrmLoss{}, report);
  const auto values = report.values();
  EXPECT_EQ(values.at("accuracy"), 0.5);
  EXPECT_NEAR(values.at("margin"), 0, 1e-12);
  EXPECT_NEAR(values.at("mean_reward"), 0.45, 1e-12);
  EXPECT_EQ(values.at("min_reward"), -0.3);
  EXPECT_EQ(values.at("max_reward"), 1.2);
}

TEST(OrmLoss, RefusesNonsense) {
  EXPECT_FALSE(accepted(OrmLoss{.center = -1}));
  EXPECT_TRUE(accepted(OrmLoss{.center = 0.01}));
}

// Two sequences; steps end at tokens 2 and 4 of the first and 3 of the second, of classes 1, 0
// and 1.
struct Steps {
  Experience b;
  Columns scores;
  explicit Steps(std::size_t classes) {
    b.append({1, 2, 3, 4, 5}, {0, 0, 1, 0, 1});
    b.append({1, 2, 3, 4}, {0, 0, 0, 1});
    b.classes = {-1, -1, 1, -1, 0, -1, -1, -1, 1};
    b.count = 3;
    for (std::size_t c = 0; c < classes; ++c) {
      scores.emplace_back();
      for (std::size_t t = 0; t < b.tokens.size(); ++t)
        scores.back().push_back(draw(7 + c, t, -4, 4));
    }
  }
};

TEST(PrmLoss, IsTheMeanCrossEntropyOfTheScoredTokens) {
  const Steps p(3);
  double sum = 0, hits = 0;
  for (const std::size_t t : {2u, 4u, 8u}) {
    const auto right = static_cast<std::size_t>(p.b.classes[t]);
    double normaliser = 0;
    bool greatest = true;
    for (const auto& column : p.scores) {
      normaliser += std::exp(column[t]);
      greatest = greatest && column[t] <= p.scores[right][t];
    }
    sum += std::log(normaliser) - p.scores[right][t];
    hits += greatest;
  }
  Report report;
  EXPECT_NEAR(slopes_of_scores(PrmLoss{}, p.scores, p.b, report).loss, sum / 3, 1e-12);
  EXPECT_NEAR(report.values().at("accuracy"), hits / 3, 1e-12);
  const PrmLoss placeholder{.reward_tokens = {5, 9, 11}};
  EXPECT_NEAR(slopes_of_scores(placeholder, p.scores, p.b, report).loss, sum / 3, 1e-12)
      << "held to the reward tokens";
}

TEST(PrmLoss, TakesLogProbabilitiesOfTheWholeVocabularyAsTheyAre) {
  const Steps p(2);
  Report report;
  const auto found = slopes_of_scores(PrmLoss{.reward_tokens = {5, 9}, .whole_vocabulary = true},
                                      p.scores, p.b, report);
  EXPECT_NEAR(found.loss, -(p.scores[1][2] + p.scores[0][4] + p.scores[1][8]) / 3, 1e-12);
}

TEST(PrmLoss, DoesNotOverflowWhereScoresAreLarge) {
  Steps p(2);
  for (std::size_t t = 0; t < p.scores[0].size(); ++t) {
    p.scores[0][t] = 2000;
    p.scores[1][t] = -2000;
  }
  Report report;
  EXPECT_NEAR(slopes_of_scores(PrmLoss{}, p.scores, p.b, report).loss, 2 * 4000.0 / 3, 1e-9);
}

TEST(PrmLoss, InFloat32IsTheOtherButForItsRounding) {
  for (const std::size_t classes : {2u, 3u}) {
    const Steps p(classes);
    Report report, rounded_report;
    const auto exact = slopes_of_scores(PrmLoss{}, p.scores, p.b, report);
    const auto rounded = slopes_of_scores(PrmLoss{.float32 = true}, p.scores, p.b, rounded_report);
    EXPECT_NEAR(rounded.loss, exact.loss, 1e-6);
    EXPECT_NE(rounded.loss, exact.loss);
    for (std::size_t c = 0; c < classes; ++c)
      for (std::size_t t = 0; t < p.b.tokens.size(); ++t)
        EXPECT_NEAR(rounded.dscores[c][t], exact.dscores[c][t], 1e-6);
    EXPECT_EQ(rounded_report.values(), report.values());
  }
}

TEST(PrmLoss, InFloat32HasTheGradientsOfFiniteDifferences) {
  const Steps p(3);
  Report report;
  const PrmLoss loss{.float32 = true};
  const auto claimed = slopes_of_scores(loss, p.scores, p.b, report);
  const double h =
      1.0 / 128;  // wide enough that the rounding of the loss, some 1e-7, is not the derivative
  for (std::size_t c = 0; c < p.scores.size(); ++c)
    for (std::size_t t = 0; t < p.b.tokens.size(); ++t) {
      auto up = p.scores, down = p.scores;
      up[c][t] += h;
      down[c][t] -= h;
      const double derivative = (slopes_of_scores(loss, up, p.b, report).loss -
                                 slopes_of_scores(loss, down, p.b, report).loss) /
                                (2 * h);
      EXPECT_NEAR(claimed.dscores[c][t], derivative, 5e-5) << "class " << c << " token " << t;
    }
}

// Values of torch 2.13 for the logits (0, 13.25): 1 - p is 15 units of 2^-23, not 14.77.
TEST(PrmLoss, InFloat32RoundsAsTorchDoes) {
  LastTokens p({13.25});
  p.scores.insert(p.scores.begin(), std::vector<double>(p.b.tokens.size(), 0.0));
  p.b.classes.assign(p.b.tokens.size(), -1);
  p.b.classes.back() = 1;
  p.b.sequences_per_group = 1;
  p.b.count = 1;
  Report report;
  const auto found = slopes_of_scores(PrmLoss{.float32 = true}, p.scores, p.b, report);
  const auto rounded = [](double value) { return static_cast<float>(value); };
  EXPECT_FLOAT_EQ(rounded(found.loss), 1.7881377516459906e-06f);
  EXPECT_FLOAT_EQ(rounded(found.dscores[1].back()), -1.7881393432617188e-06f);
  EXPECT_FLOAT_EQ(rounded(found.dscores[0].back()), 1.7603429114387836e-06f);
}

TEST(PrmLoss, RefusesNonsense) {
  EXPECT_FALSE(accepted(PrmLoss{.reward_tokens = {4}}));
  EXPECT_FALSE(accepted(PrmLoss{.reward_tokens = {4, 4}}));
  EXPECT_FALSE(accepted(PrmLoss{.whole_vocabulary = true}));
  EXPECT_TRUE(accepted(PrmLoss{.reward_tokens = {4, 5}, .whole_vocabulary = true}));
  EXPECT_FALSE(
      (PrmLoss{.reward_tokens = {4, 5}, .whole_vocabulary = true, .float32 = true}.validate()));
  Steps p(2);
  p.b.classes.clear();
  Report report;
  EXPECT_THROW(slopes_of_scores(PrmLoss{}, p.scores, p.b, report), Bug);
}

// The properties of catalog_test.cpp, for losses that read scores.
struct RewardCase {
  AnyLoss loss;
  Columns scores;
  Experience b;
};

std::vector<RewardCase> cases() {
  const LastTokens pairs({1.2, 0.4, -0.3, 0.5, 2, -3});
  Experience with_margins = pairs.b;
  with_margins.label = {0.5, 0, 0, 0, 1.5, 0};
  const Steps two(2), three(3);
  return {{OrmLoss{}, pairs.scores, pairs.b},
          {OrmLoss{.center = 0.3}, pairs.scores, with_margins},
          {OrmLoss{.kind = OrmLossKind::log_exp, .center = 0.1}, pairs.scores, pairs.b},
          {PrmLoss{}, three.scores, three.b},
          {PrmLoss{.reward_tokens = {5, 9}}, two.scores, two.b},
          {PrmLoss{.reward_tokens = {5, 9}, .whole_vocabulary = true}, two.scores, two.b}};
}

// Includes the loss whose rounding is too coarse for these finite differences.
std::vector<RewardCase> all_cases() {
  auto out = cases();
  const Steps three(3);
  out.push_back({PrmLoss{.float32 = true}, three.scores, three.b});
  return out;
}

TEST(RewardLosses, HaveTheGradientsOfFiniteDifferences) {
  for (const auto& [loss, scores, b] : cases()) {
    Report report;
    const auto claimed = slopes_of_scores(loss, scores, b, report);
    const double h = 1e-6;
    for (std::size_t c = 0; c < scores.size(); ++c)
      for (std::size_t t = 0; t < b.tokens.size(); ++t) {
        auto up = scores, down = scores;
        up[c][t] += h;
        down[c][t] -= h;
        const double derivative = (slopes_of_scores(loss, up, b, report).loss -
                                   slopes_of_scores(loss, down, b, report).loss) /
                                  (2 * h);
        EXPECT_NEAR(claimed.dscores[c][t], derivative, 1e-8)
            << loss.spec().name << " class " << c << " token " << t;
      }
  }
}

TEST(RewardLosses, AreTheSumOverTheirMicroBatches) {
  for (const auto& [loss, scores, b] : all_cases()) {
    Report whole_report, parts_report;
    const auto whole = slopes_of_scores(loss, scores, b, whole_report);
    double sum = 0;
    Columns gradient(scores.size());
    for (std::int32_t n = 0; n < b.sequences(); n += b.sequences_per_group) {
      Columns mine;
      for (const auto& column : scores)
        mine.push_back(part(column, b.offsets[static_cast<std::size_t>(n)],
                            b.offsets[static_cast<std::size_t>(n + b.sequences_per_group)]));
      Report report;
      const auto share =
          slopes_of_scores(loss, mine, b.slice(n, n + b.sequences_per_group), report);
      sum += share.loss;
      for (std::size_t c = 0; c < gradient.size(); ++c)
        gradient[c].insert(gradient[c].end(), share.dscores[c].begin(), share.dscores[c].end());
      parts_report.merge(report);
    }
    EXPECT_NEAR(sum, whole.loss, 1e-12) << loss.spec().name;
    EXPECT_EQ(gradient, whole.dscores) << loss.spec().name;
    const auto expected = whole_report.values(), found = parts_report.values();
    ASSERT_EQ(expected.size(), found.size());
    for (const auto& [name, value] : expected) EXPECT_NEAR(found.at(name), value, 1e-12) << name;
  }
}

TEST(RewardLosses, DoNotReadTokensThatAreNotScored) {
  for (const auto& [loss, scores, b] : all_cases()) {
    Report clean, dirty;
    const auto expected = slopes_of_scores(loss, scores, b, clean);
    for (const double garbage : {1e4, std::numeric_limits<double>::quiet_NaN(),
                                 -std::numeric_limits<double>::infinity()}) {
      auto changed = scores;
      for (auto& column : changed)
        for (std::size_t t = 0; t < column.size(); ++t)
          if (b.mask[t] == 0) column[t] = garbage;
      const auto found = slopes_of_scores(loss, changed, b, dirty);
      EXPECT_EQ(found.loss, expected.loss) << loss.spec().name;
      EXPECT_EQ(found.dscores, expected.dscores) << loss.spec().name;
    }
  }
}

TEST(RewardLosses, AreGivenBackByTheirSpecs) {
  const engine::loss::LossTable table{engine::loss::entry<OrmLoss>(),
                                      engine::loss::entry<PrmLoss>()};
  for (const auto& [loss, scores, b] : all_cases()) {
    const auto again = make_loss(table, loss.spec());
    ASSERT_TRUE(again) << again.error().what;
    EXPECT_EQ(again->spec(), loss.spec());
    EXPECT_EQ(again->needs().candidates, loss.needs().candidates);
  }
}

}  // namespace
}  // namespace troupe::algorithms
