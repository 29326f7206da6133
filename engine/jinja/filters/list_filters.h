// Filters of sequences: find_choice_filter() has map, select, reject, selectattr and rejectattr.
#pragma once

#include "engine/jinja/filters/filters.h"

namespace troupe::engine::jinja {

/// nullptr if there is no filter of this name here.
const Filter* find_list_filter(std::string_view name);

/// nullptr if there is no filter of this name here.
const Filter* find_choice_filter(std::string_view name);

}  // namespace troupe::engine::jinja
