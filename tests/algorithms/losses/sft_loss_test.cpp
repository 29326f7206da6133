#include "algorithms/losses/sft_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "algorithms/losses/loss_average.h"
#include "tests/algorithms/losses/cases.h"

namespace troupe::algorithms {
namespace {

using namespace troupe::test;

TEST(SftLoss, IsTheMeanNegativeLogLikelihoodOfTrainedTokens) {
  Experience b;
  b.append({1, 2, 3}, {0, 0, 1});
  b.append({1, 2, 3}, {0, 1, 1});
  b.count = 3;
  Report report;
  const auto out = slopes_of(SftLoss{}, {-9, -9, -1, -9, -2, -0.5}, {0, 0, 1, 0, 2, 3}, b, report);
  EXPECT_DOUBLE_EQ(out.loss, 3.5 / 3);
  EXPECT_EQ(out.dlogp, (std::vector<double>{0, 0, -1.0 / 3, 0, -1.0 / 3, -1.0 / 3}));
  EXPECT_DOUBLE_EQ(report.values().at("nll"), 3.5 / 3);
  EXPECT_DOUBLE_EQ(report.values().at("entropy"), 2);
}

TEST(SftLoss, DftWeighsEachTokenByItsOwnDetachedProbability) {
  Experience b;
  b.append({1, 2, 3}, {0, 1, 1});
  b.count = 2;
  Report report;
  const auto out =
      slopes_of(SftLoss{.kind = SftLossKind::dft}, {0, -1, -0.25}, {0, 0, 0}, b, report);
  EXPECT_DOUBLE_EQ(out.loss, (std::exp(-1.0) + 0.25 * std::exp(-0.25)) / 2);
  EXPECT_DOUBLE_EQ(out.dlogp[1], -std::exp(-1.0) / 2);
  EXPECT_DOUBLE_EQ(out.dlogp[2], -std::exp(-0.25) / 2);
}

/// Rows of these numbers of trained tokens, each behind one that is not trained, with weights
/// of 1.
Experience rows_of(const std::vector<int>& trained) {
  Experience b;
  for (std::size_t row = 0; row < trained.size(); ++row) {
    std::vector<float> weights{0};
    weights.resize(1 + static_cast<std::size_t>(trained[row]), 1);
    if (trained[row] == 0) weights.push_back(0);
    b.append(std::vector<std::int32_t>(weights.size(), 1), weights);
    b.sample_id.push_back(row);
    b.count += trained[row];
  }
  return b;
}

/// The float64 mean over micro-batches of `rows` sequences of the mean over the trained tokens of
/// each.
double mean_of_means(const Experience& b, const std::vector<double>& logp, std::int32_t rows) {
  double sum = 0;
  int parts = 0;
  for (std::int32_t begin = 0; begin < b.sequences(); begin += rows, ++parts) {
    const std::int32_t end = std::min(b.sequences(), begin + rows);
    double nll = 0, tokens = 0;
    for (auto t = static_cast<std::size_t>(b.offsets[static_cast<std::size_t>(begin)]);
         t < static_cast<std::size_t>(b.offsets[static_cast<std::size_t>(end)]); ++t) {
      nll -= b.mask[t] * logp[t];
      tokens += b.mask[t];
    }
    if (tokens > 0) sum += nll / tokens;
  }
  return sum / parts;
}

TEST(LossAverage, OfMicroBatchesIsTheMeanOfTheirMeans) {
  for (const std::vector<int>& trained :
       {std::vector<int>{3, 1}, {1, 7, 2, 2, 5}, {4, 4, 4, 4}, {2, 0, 9}, {1}}) {
    const Experience plain = rows_of(trained);
    std::vector<double> logp;
    for (std::int32_t t = 0; t < plain.token_count(); ++t) logp.push_back(-0.25 * (t % 7) - 0.1);
    for (const std::int32_t rows : {1, 2, 3, 16}) {
      Experience b = plain;
      LossAverage{LossMean::micro_batches, rows}.apply(b);
      Report report;
      const std::vector<double> entropy(logp.size(), 0);
      const auto out = slopes_of(SftLoss{}, logp, entropy, b, report);
      EXPECT_NEAR(out.loss, mean_of_means(plain, logp, rows), 1e-6 * (1 + out.loss));
      // The weight of a token is that of its row, with which the gradient is scaled.
      const double h = 1e-3;
      for (std::size_t t = 0; t < logp.size(); ++t) {
        auto up = logp, down = logp;
        up[t] += h;
        down[t] -= h;
        const double derivative =
            (mean_of_means(plain, up, rows) - mean_of_means(plain, down, rows)) / (2 * h);
        EXPECT_NEAR(out.dlogp[t], derivative, 1e-6);
      }
    }
  }
}

TEST(LossAverage, KeepsTheBitsOfRowsWithEquallyManyTrainedTokens) {
  const Experience plain = rows_of({5, 5, 5, 5});
  Experience b = plain;
  LossAverage{LossMean::micro_batches, 2}.apply(b);
  EXPECT_EQ(b.mask, plain.mask);
}

TEST(LossAverage, TakesSequencesOfASampleForOneRow) {
  Experience b = rows_of({1, 2, 3, 4}), whole = rows_of({3, 7});
  b.sample_id = {0, 0, 1, 1};
  LossAverage{LossMean::micro_batches, 1}.apply(b, true);
  LossAverage{LossMean::micro_batches, 1}.apply(whole);
  EXPECT_EQ(b.mask[1], whole.mask[1]);
  EXPECT_EQ(b.mask.back(), whole.mask.back());
}

TEST(LossAverage, OfTokensChangesNothing) {
  const Experience plain = rows_of({1, 5});
  Experience b = plain;
  LossAverage{}.apply(b);
  EXPECT_EQ(b.mask, plain.mask);
}

}  // namespace
}  // namespace troupe::algorithms
