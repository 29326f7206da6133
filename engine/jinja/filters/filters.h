// Filters of the template language ("| upper").
#pragma once

#include <string_view>

#include "engine/jinja/runtime.h"

namespace troupe::engine::jinja {

/// `parameters` has the form of check_arguments().
struct Filter {
  Value (*body)(Runtime&, const Value&, Arguments&);
  const char* parameters;
};

/// nullptr if there is no filter of this name.
const Filter* find_filter(std::string_view name);

}  // namespace troupe::engine::jinja
