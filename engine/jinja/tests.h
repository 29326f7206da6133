// Tests of the template language ("is defined").
#pragma once

#include "engine/jinja/runtime.h"

namespace troupe::engine::jinja {

/// `parameters` has the form of check_arguments().
struct Test {
  bool (*body)(Runtime&, const Value&, Arguments&);
  const char* parameters;
};
/// nullptr if there is no test of this name.
const Test* find_test(std::string_view name);
std::vector<std::string_view> test_names();

}  // namespace troupe::engine::jinja
