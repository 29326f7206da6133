// Lists the files of a path: a file, a folder, a dataset saved by Hugging Face datasets, or a
// pattern.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"

namespace troupe::engine::data {

/// Returns the data files of a folder written by Hugging Face's datasets, in the order of their
/// rows: by save_to_disk (state.json, dataset_dict.json), or its cache (dataset_info.json); nullopt
/// for another folder. Errc::usage for several splits without "train"; Errc::unsupported for rows
/// that an index file selects; Errc::bad_input, corrupt for damaged files.
Result<std::optional<std::vector<std::string>>> hugging_face_files(const std::string& folder);

constexpr std::string_view known_formats =
    ".jsonl, .ndjson, .json, .csv, .tsv, .txt (each also with .gz), .parquet, .arrow";

/// The extension that determines the format: ".csv" for "Rows.CSV.gz"; in lower case, "" if there
/// is none. ".arrow" for all names of Arrow IPC.
std::string data_format(const std::string& path);

/// A folder is expanded to its data files (without subfolders), sorted by name; a folder written by
/// save_to_disk to the files of its state.json, in their order; a folder of several splits to its
/// split "train". A pattern (*, ?, [a-z], and ** for any folders) is expanded to the matching data
/// files, sorted by name. Errc::not_found, also for a folder or a pattern without data files;
/// Errc::usage for a folder of several splits without "train"; Errc::corrupt,
/// unsupported: a damaged or unusual state.json.
Result<std::vector<std::string>> list_data_files(const std::vector<std::string>& paths);

}  // namespace troupe::engine::data
