// Filters of texts, and filters for HTML and URLs.
#pragma once

#include "engine/jinja/filters.h"

namespace troupe::engine::jinja {

const FilterTable& text_filters();
const FilterTable& html_filters();

}  // namespace troupe::engine::jinja
