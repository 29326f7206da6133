// The reference page of all configuration keys.
#pragma once

#include <string>

namespace troupe::launch::recipes {

/// Markdown. docs/configuration.md is this text.
std::string reference_page();

}  // namespace troupe::launch::recipes
