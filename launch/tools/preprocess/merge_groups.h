// --merge-group-keys: merges the token files of a folder by the names of their groups.
#pragma once

#include <string>
#include <vector>

#include "engine/base/error.h"

namespace troupe::launch::tools::preprocess {

/// For each key, all datasets NAME.bin and NAME.idx of `folder` whose names contain the key, in the
/// order of their names, become PREFIX_KEY.bin and .idx. Errc::not_found for a key without
/// datasets; Errc::usage for datasets of different types; errors of IndexedDataset::open.
Result<> merge_groups(const std::string& folder, const std::vector<std::string>& keys,
                      const std::string& prefix);

}  // namespace troupe::launch::tools::preprocess
