// Filters of texts.
#pragma once

#include "engine/jinja/filters/filters.h"

namespace troupe::engine::jinja {

/// nullptr if there is no filter of this name here.
const Filter* find_text_filter(std::string_view name);

}  // namespace troupe::engine::jinja
