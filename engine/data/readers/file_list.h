// Which files a path stands for: a file, a folder of files, a data set in Hugging Face's form, or a
// pattern.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace troupe::engine::data {

constexpr std::string_view known_formats =
    ".jsonl, .ndjson, .json, .csv, .tsv, .txt (each also with .gz), .parquet, .arrow";

/// ".csv" of "Rows.CSV.gz": by which extension the file is read; in lower case, "" when it has
/// none. ".arrow" for all names of Arrow IPC.
std::string data_format(const std::string& path);

/// A file stands for itself. A folder stands for the data files in it (not below it), by name; one
/// that Hugging Face's save_to_disk wrote for the files that its state.json names, in their order;
/// one of several splits for its split "train". A pattern (*, ?, [a-z], and ** for any folders)
/// stands for the data files that it fits, by name. Errc::not_found, also for a folder or a pattern
/// without any; Errc::usage: a folder of several splits none of which is "train"; Errc::corrupt,
/// unsupported: a damaged or unusual state.json.
Result<std::vector<std::string>> list_data_files(const std::vector<std::string>& paths);

}  // namespace troupe::engine::data
