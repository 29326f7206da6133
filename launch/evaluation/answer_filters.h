// Filters of generated answers (lm_eval/filters 0.4.13). A pipeline takes the answers of an item
// and returns what is compared with its target.
#pragma once

#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"
#include "launch/evaluation/task_config.h"

namespace troupe::launch::evaluation {

/// Errc::usage for a function that does not exist, or settings that it does not have; the patterns
/// are compiled.
Result<> check_filter(const FilterPipeline& pipeline);

/// The filtered answer of an item: one text, or a list of texts. `row`: of the item, for
/// multi_choice_regex, humaneval and humaneval_instruct. Errc::bad_input for a pattern that takes
/// too long.
Result<Json> filtered(const FilterPipeline& pipeline, const std::vector<std::string>& answers,
                      const Json& row);

}  // namespace troupe::launch::evaluation
