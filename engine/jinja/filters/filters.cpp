#include "engine/jinja/filters/filters.h"

#include "engine/jinja/filters/list_filters.h"
#include "engine/jinja/filters/text_filters.h"
#include "engine/jinja/filters/value_filters.h"

namespace troupe::engine::jinja {

const Filter* find_filter(std::string_view name) {
  for (const auto find : {find_text_filter, find_html_filter, find_list_filter, find_choice_filter,
                          find_value_filter})
    if (const Filter* found = find(name)) return found;
  return nullptr;
}

}  // namespace troupe::engine::jinja
