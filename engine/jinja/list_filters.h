// Filters of sequences: choice_filters() has map, select, reject, selectattr and rejectattr.
#pragma once

#include "engine/jinja/filters.h"

namespace troupe::engine::jinja {

const FilterTable& list_filters();
const FilterTable& choice_filters();

}  // namespace troupe::engine::jinja
