#include "launch/evaluation/metrics.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "launch/evaluation/python_random.h"

namespace troupe::launch::evaluation {
namespace {

double sum_of(std::span<const ItemValue> values, double ItemValue::*member) {
  double sum = 0;
  for (const ItemValue& each : values) sum += each.*member;
  return sum;
}

double mean_of(std::span<const ItemValue> values) {
  return sum_of(values, &ItemValue::value) / static_cast<double>(values.size());
}

double weighted_mean(std::span<const ItemValue> values) {
  return sum_of(values, &ItemValue::value) / sum_of(values, &ItemValue::weight);
}

// With N - 1.
double sample_std_dev(std::span<const double> values) {
  double sum = 0, squares = 0;
  for (const double each : values) sum += each;
  const double mean = sum / static_cast<double>(values.size());
  for (const double each : values) squares += (each - mean) * (each - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double bootstrap(Aggregation how, std::span<const ItemValue> values, std::int64_t iterations) {
  const std::int64_t block = std::min<std::int64_t>(1000, iterations);
  std::vector<double> estimates;
  std::vector<ItemValue> drawn(values.size());
  for (std::int64_t i = 0; i < iterations / block; ++i) {
    PythonRandom random(static_cast<std::uint64_t>(i));
    for (std::int64_t n = 0; n < block; ++n) {
      const auto places = random.choices(values.size(), values.size());
      std::ranges::transform(places, drawn.begin(), [&](std::size_t at) { return values[at]; });
      estimates.push_back(aggregate(how, drawn));
    }
  }
  return sample_std_dev(estimates);
}

}  // namespace

double aggregate(Aggregation how, std::span<const ItemValue> values) {
  switch (how) {
    case Aggregation::mean:
      return mean_of(values);
    case Aggregation::median: {
      std::vector<double> sorted;
      for (const ItemValue& each : values) sorted.push_back(each.value);
      std::ranges::sort(sorted);
      return sorted[sorted.size() / 2];
    }
    case Aggregation::perplexity:
      return std::exp(-mean_of(values));
    case Aggregation::weighted_perplexity:
      return std::exp(-weighted_mean(values));
    case Aggregation::bits_per_byte:
      return -weighted_mean(values) / std::numbers::ln2;
  }
  return 0;
}

std::optional<double> standard_error(Aggregation how, std::span<const ItemValue> values,
                                     std::int64_t iterations) {
  if (values.size() < 2 || iterations <= 0) return std::nullopt;
  if (how == Aggregation::weighted_perplexity || how == Aggregation::bits_per_byte)
    return std::nullopt;
  if (how != Aggregation::mean) return bootstrap(how, values, iterations);
  std::vector<double> numbers;
  for (const ItemValue& each : values) numbers.push_back(each.value);
  return sample_std_dev(numbers) / std::sqrt(static_cast<double>(values.size()));
}

double group_score(std::span<const GroupPart> parts, bool weight_by_size) {
  double sum = 0, weights = 0;
  for (const GroupPart& part : parts) {
    const double weight = weight_by_size ? static_cast<double>(part.items) : 1.0;
    sum += part.score * weight;
    weights += weight;
  }
  return sum / weights;
}

std::optional<double> group_error(std::span<const GroupPart> parts, bool weight_by_size) {
  double sum = 0, items = 0;
  for (const GroupPart& part : parts) {
    if (!part.error) return std::nullopt;
    const auto n = static_cast<double>(part.items);
    sum += weight_by_size ? (n - 1) * *part.error * *part.error * n : *part.error * *part.error;
    items += n;
  }
  const auto count = static_cast<double>(parts.size());
  if (!weight_by_size) return std::sqrt(sum) / count;
  return std::sqrt(sum / (items - count) / items);
}

}  // namespace troupe::launch::evaluation
