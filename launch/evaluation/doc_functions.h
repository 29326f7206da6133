// Built-in functions that task files name in the place of Python functions: on rows
// (process_docs), and on answers (process_results).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"

namespace troupe::launch::evaluation {

/// Names for process_docs.
const std::vector<std::string_view>& document_functions();
/// Applies one of them to a row. The row in the columns that the data set has on Hugging Face, from
/// it or from the layout that its authors publish; hellaswag and wikitext add what
/// lm-evaluation-harness computes (tasks/hellaswag/utils.py,
/// tasks/wikitext/preprocess_wikitext.py). Errc::bad_input for a missing column.
Result<Json> process_document(std::string_view function, Json row);

/// Names for process_results (scores.h).
const std::vector<std::string_view>& result_functions();

}  // namespace troupe::launch::evaluation
