// The text of a data preview: counts and a histogram of lengths. No line is longer than 80
// columns, except for file names and messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launch/commands/explain/data_preview.h"

namespace troupe::launch::commands {

constexpr std::size_t preview_columns = 80;

/// "1,234,567".
std::string grouped(std::int64_t value);
/// "  LABEL            VALUE" and a line break.
std::string labelled_line(std::string_view label, std::string_view value);
/// "45 s", "12 min", "3.4 h", "2.1 days".
std::string duration_text(double seconds);

/// Rows, why some are not used, and tokens.
std::string rows_text(const DataPreview& preview);
/// A line per range of lengths with a bar. `lengths` is not empty.
std::string histogram_text(std::vector<std::int64_t> lengths);

}  // namespace troupe::launch::commands
