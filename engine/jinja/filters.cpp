#include "engine/jinja/filters.h"

#include <array>

namespace troupe::engine::jinja {

namespace {

std::array<const FilterTable*, 5> filter_tables() {
  return {&text_filters(), &html_filters(), &list_filters(), &choice_filters(), &value_filters()};
}

}  // namespace

const Filter* find_filter(std::string_view name) {
  for (const FilterTable* table : filter_tables())
    if (const auto found = table->find(name); found != table->end()) return &found->second;
  return nullptr;
}

std::vector<std::string_view> filter_names() {
  std::vector<std::string_view> out;
  for (const FilterTable* table : filter_tables())
    for (const auto& [name, filter] : *table) out.push_back(name);
  return out;
}

}  // namespace troupe::engine::jinja
