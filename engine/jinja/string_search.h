// Methods of strings that search and test, and the arguments of string methods.
#pragma once

#include <map>

#include "engine/jinja/runtime.h"

namespace troupe::engine::jinja {

/// `stays_escaped`: results for markup are markup. `parameters` has the form of check_arguments().
struct Method {
  Value (*body)(Runtime&, const std::string&, const Arguments&);
  const char* parameters;
  bool stays_escaped = false;
};

/// The argument as a text (nullptr: absent or None), as a required text, or as a number.
const std::string* text_argument(const Arguments& arguments, std::size_t index,
                                 std::string_view name);
const std::string& needed_text(const Arguments& arguments, std::size_t index,
                               std::string_view name);
std::int64_t integer_argument(const Arguments& arguments, std::size_t index, std::string_view name,
                              std::int64_t otherwise);

/// std::string::find and rfind, in linear time, charged to the meter.
std::size_t find_text(std::string_view text, std::string_view what, std::size_t from = 0);
std::size_t rfind_text(std::string_view text, std::string_view what);

/// Methods that search and test: find, startswith, isdigit...
const std::map<std::string_view, Method>& string_questions();

}  // namespace troupe::engine::jinja
