// Cells of Arrow arrays as JSON values, exactly.
#pragma once

#include <arrow/api.h>

#include "engine/base/json.h"

namespace troupe::engine::data {

/// Errc::unsupported (names the column) when the schema has a type that rows cannot hold, nests too deep, or repeats a name.
Result<> check_schema(const arrow::Schema& schema, const std::string& where);

/// Cell `i` of `array`. `budget` bytes are left for the row, and less after. Strings and lists become themselves, structs objects, maps
/// objects (string keys) or lists of pairs, dates, times and decimals their text. Errc::bad_input: text that is not UTF-8, an unsigned
/// integer beyond 63 bits, a row beyond its budget.
Result<Json> cell_json(const arrow::Array& array, std::int64_t i, std::size_t& budget);

}  // namespace troupe::engine::data
