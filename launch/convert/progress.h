// The record of a conversion that is under way, from which the same command continues.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/json.h"

namespace troupe::launch {

inline constexpr std::string_view progress_file = "convert.progress.json";

/// Name, size and time of each file: equal where none was changed. Errc::not_found, io.
Result<Json> stamps_of(const std::vector<std::string>& paths);

/// Whether the record at `path` is that of `conversion`, everything that determines the bytes of
/// the result.
bool is_record_of(const std::string& path, const Json& conversion);
/// Writes the record, once no file of another conversion is left. Errc::io.
Result<> write_record(const std::string& path, const Json& conversion);

}  // namespace troupe::launch
