// Summary of an evaluation from the lines of its items: accuracy or pass@k, rewards and lengths.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/training/estimators.h"
#include "engine/base/json/json.h"

namespace troupe::launch::commands {

/// A number with its confidence interval of 95 %.
struct Estimate {
  std::string name;  ///< "accuracy", "pass@4", "reward", "rewards/exact_match/mean"
  double value = 0;
  std::optional<algorithms::Interval> interval;
  std::string_view method;  ///< of the interval: "Wilson", "clustered Wilson", "normal"
};

struct EvalSummary {
  std::int64_t items = 0, samples = 0;  ///< samples: completions per item
  std::int64_t failed = 0;              ///< rewards that failed
  std::string failure;                  ///< the first one's reason
  std::vector<Estimate> estimates;
};

/// `lines`: at least one, as EvalItems writes them. A completion passes with a reward of at least
/// `pass_reward`. One completion per item: the share that passes is the accuracy, with Wilson's
/// interval. Several: pass@k for k = 1, 2, 4, ..., the mean over the items, with Wilson's
/// interval for completions that are independent given their item (clustered_interval()). Rewards:
/// the normal interval of the mean over the items, unless all are equal. A failed reward does not
/// pass, and is left out of the means of rewards. Errc::corrupt for a line of another form.
Result<EvalSummary> summarize(const std::vector<Json>& lines, double pass_reward);

/// Lines "accuracy 0.94 (95 % interval 0.898 to 0.965, Wilson)".
std::string summary_text(const EvalSummary& summary);
Json summary_json(const EvalSummary& summary);

}  // namespace troupe::launch::commands
