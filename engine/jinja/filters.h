// Filters of the template language ("| upper").
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "engine/jinja/runtime.h"

namespace troupe::engine::jinja {

/// `parameters` has the form of check_arguments().
struct Filter {
  Value (*body)(Runtime&, const Value&, Arguments&);
  const char* parameters;
};

using FilterTable = std::map<std::string_view, Filter>;

/// nullptr if there is no filter of this name.
const Filter* find_filter(std::string_view name);
std::vector<std::string_view> filter_names();

}  // namespace troupe::engine::jinja
