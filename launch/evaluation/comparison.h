// Comparison of two evaluations of the same items.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"

namespace troupe::launch::evaluation {

/// A metric of a task in both evaluations, over the items that both have.
struct PairedDifference {
  std::string task, filter, metric;
  std::int64_t items = 0;
  double first = 0, second = 0;  ///< means
  /// second - first with the normal interval of 95 % of the mean of the items' differences.
  double difference = 0, low = 0, high = 0;
  /// Of values 0 and 1: items that only the first, or only the second, has right, and the exact
  /// two-sided p-value of McNemar's test (binomial, Fagerland et al. 2013 eq. 3).
  std::optional<std::int64_t> only_first, only_second;
  std::optional<double> p_value;
};

/// min(1, 2 P(X <= min(b, c))), X binomial with b + c draws of probability 1/2.
double mcnemar_p(std::int64_t b, std::int64_t c);

/// Compares the newest samples_TASK_DATE.jsonl of each task in two folders. Errc::not_found where a
/// folder has none, bad_input for items with different prompts or targets, and for no common task.
Result<std::vector<PairedDifference>> compare_results(const std::string& first,
                                                      const std::string& second);

std::string comparison_table(const std::vector<PairedDifference>& all);
Json comparison_json(const std::vector<PairedDifference>& all);

}  // namespace troupe::launch::evaluation
