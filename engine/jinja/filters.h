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

// Filters of any value: numbers, defaults, JSON.
const FilterTable& value_filters();

// Filters of sequences: choice_filters() has map, select, reject, selectattr and rejectattr.
const FilterTable& list_filters();
const FilterTable& choice_filters();

// Filters of texts, and filters for HTML and URLs.
const FilterTable& text_filters();
const FilterTable& html_filters();

}  // namespace troupe::engine::jinja
