// Filters of texts, and filters for HTML and URLs.
#pragma once

#include "engine/jinja/filters/filters.h"

namespace troupe::engine::jinja {

/// nullptr if there is no filter of this name here.
const Filter* find_text_filter(std::string_view name);

/// nullptr if there is no filter of this name here.
const Filter* find_html_filter(std::string_view name);

}  // namespace troupe::engine::jinja
