// LLaMA-Factory's register of data sets, dataset_info.json.
#pragma once

#include <string_view>

#include "launch/tools/migration/settings.h"

namespace troupe::launch::tools::migration {

/// Converts a value by one of the converters datasets (names of data sets, which become files and
/// columns), dataset_dir, map_keys, mix_strategy and interleave_probs. False for another converter.
bool convert_dataset(ImportSettings& settings, std::string_view converter,
                     const config::YamlNode& value);

}  // namespace troupe::launch::tools::migration
