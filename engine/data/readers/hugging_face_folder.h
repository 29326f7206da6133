// Folders written by Hugging Face's datasets: by save_to_disk (state.json, dataset_dict.json), and
// its cache (dataset_info.json).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/error.h"

namespace troupe::engine::data {

/// Returns the data files of such a folder in the order of their rows; nullopt for another folder.
/// Errc::usage for several splits without "train"; Errc::unsupported for rows that an index file
/// selects; Errc::bad_input, corrupt for damaged files.
Result<std::optional<std::vector<std::string>>> hugging_face_files(const std::string& folder);

}  // namespace troupe::engine::data
