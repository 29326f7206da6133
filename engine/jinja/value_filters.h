// Filters of any value: numbers, defaults, JSON.
#pragma once

#include "engine/jinja/filters.h"

namespace troupe::engine::jinja {

const FilterTable& value_filters();

}  // namespace troupe::engine::jinja
