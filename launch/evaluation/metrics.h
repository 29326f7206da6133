// Scores of an evaluation as lm-evaluation-harness computes them (lm_eval/api/metrics.py 0.4.13):
// aggregations of the values of items, and their standard errors.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/errors/error.h"

namespace troupe::launch::evaluation {

/// The value of an item: a number, or a sum of log-probabilities with its weight (words or bytes).
struct ItemValue {
  double value = 0;
  double weight = 1;
};

enum class Aggregation { mean, median, perplexity, weighted_perplexity, bits_per_byte };
constexpr std::array<std::string_view, 5> names_of(Aggregation) {
  return {"mean", "median", "perplexity", "weighted_perplexity", "bits_per_byte"};
}

/// At least one value.
double aggregate(Aggregation how, std::span<const ItemValue> values);
/// Of the mean s / sqrt(N) with s of N - 1; of the median and the perplexity the standard deviation
/// of `iterations` bootstrap samples, in blocks of 1,000 of which block i is drawn by
/// Random(i).choices(). nullopt for the others, for one value, and for iterations 0.
std::optional<double> standard_error(Aggregation how, std::span<const ItemValue> values,
                                     std::int64_t iterations = 100'000);

/// A part of a group: a score, its standard error and its number of items.
struct GroupPart {
  double score = 0;
  std::optional<double> error;
  std::int64_t items = 0;
};
/// The mean over the parts, weighted by their items or not. At least one part with items.
double group_score(std::span<const GroupPart> parts, bool weight_by_size);
/// pooled_sample_stderr() or unweighted_mean_stderr(); nullopt where a part has none.
std::optional<double> group_error(std::span<const GroupPart> parts, bool weight_by_size);

}  // namespace troupe::launch::evaluation
