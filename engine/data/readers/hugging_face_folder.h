// Folders that Hugging Face's datasets wrote: save_to_disk's (state.json, dataset_dict.json) and
// those of its cache (dataset_info.json).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/error.h"

namespace troupe::engine::data {

/// The data files of such a folder in the order of their rows; nullopt: it is another folder.
/// Errc::usage: several splits, none of them "train"; Errc::unsupported: rows that are picked by an
/// index file; Errc::bad_input, corrupt: damaged.
Result<std::optional<std::vector<std::string>>> hugging_face_files(const std::string& folder);

}  // namespace troupe::engine::data
