// One value from a file or from --set into its slot.
#pragma once

#include <string>

#include "launch/config/fields.h"
#include "launch/config/yaml.h"

namespace troupe::launch {

/// Stores `node` in the field. Returns "" or what is wrong ("a whole number is expected, found
/// \"many\""). A null leaves the default.
std::string assign(const Field& field, const YamlNode& node, RunConfig& config);

}  // namespace troupe::launch
