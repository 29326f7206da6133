// The settings train.keep_best and train.early_stopping.
#pragma once

#include <string>
#include <vector>

#include "algorithms/training/model_selection.h"
#include "launch/recipes/validate.h"

namespace troupe::launch::recipes {

/// Checks that the metrics are ones that the run's evaluations have, as far as that is known.
void validate_selection(Validation& v);

/// The metrics that a run's evaluations can have. Values that a reward program names itself, and
/// those of some settings of a loss, are not among them.
std::vector<std::string> eval_metric_names(const config::RunConfig& config);

/// Errc::usage for a metric without a known direction.
Result<algorithms::ModelSelection> model_selection(const config::RunConfig& config);

}  // namespace troupe::launch::recipes
