// JSON of rows without rounding: integers that 64 bits with a sign do not hold.
#pragma once

#include <string_view>

#include "engine/base/json/json.h"

namespace troupe::engine::data {

/// parse_json() of a row, or of JSON text inside of one. An integer beyond 63 bits becomes text
/// with its digits, as in parquet files; Errc::bad_input inside of tools and calls, whose numbers a
/// chat template writes, or everywhere if the text is `rendered`: the message has the integer and
/// the member that it is in.
Result<Json> parse_exact_json(std::string_view text, std::string_view where, JsonLimits limits = {},
                              bool rendered = false);

}  // namespace troupe::engine::data
