// Cells of csv files as MindSpeed-LLM prints them: what Python's str() makes of the values that
// pandas' read_csv() infers for a column.
#pragma once

#include <string>
#include <vector>

#include "engine/base/json/json.h"

namespace troupe::launch::evaluation::mindspeed {

/// The cells of a whole column of a file, texts or null for an empty one, as texts. Missing values
/// (pandas 2.2's list: an empty cell, "None", "NA", ...) are "nan". A column of whole numbers loses
/// leading zeros and signs of plus; one of numbers with points, or with missing values, is of
/// floating-point numbers ("2" becomes "2.0"); one of truth values is "True" and "False".
std::vector<std::string> pandas_column(const std::vector<Json>& cells);

}  // namespace troupe::launch::evaluation::mindspeed
