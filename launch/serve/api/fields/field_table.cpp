#include "launch/serve/api/fields/field_table.h"

#include <algorithm>
#include <iterator>

#include "engine/base/check.h"
#include "engine/base/text.h"
#include "launch/serve/api/fields/format_rows.h"
#include "launch/serve/api/fields/generation_rows.h"
#include "launch/serve/api/fields/pooling_rows.h"

namespace troupe::launch::serve::api {

EndpointFields::EndpointFields(std::string path, std::vector<std::span<const FieldRow>> groups)
    : path_(std::move(path)) {
  for (const auto& group : groups)
    for (const FieldRow& row : group) {
      check(find(row.name) == nullptr, cat(path_, ": two rows of the field ", row.name));
      rows_.push_back(&row);
    }
}

const FieldRow* EndpointFields::find(std::string_view name) const {
  const auto found = std::ranges::find(rows_, name, [](const FieldRow* row) { return row->name; });
  return found == rows_.end() ? nullptr : *found;
}

bool is_absent_value(const FieldRow& row, const Json& value) {
  if (value.is_null()) return true;
  if (row.absent.empty()) return false;
  const Json absent = value_or_throw(parse_json(row.absent, row.name));
  if (absent.is_number() && value.is_number()) return absent.number() == value.number();
  return absent == value;
}

const std::vector<EndpointFields>& field_tables() {
  static const std::vector<EndpointFields> tables = [] {
    std::vector<EndpointFields> all = generation_tables();
    std::ranges::move(format_tables(), std::back_inserter(all));
    std::ranges::move(pooling_tables(), std::back_inserter(all));
    return all;
  }();
  return tables;
}

const EndpointFields& fields_of(std::string_view path) {
  const auto& tables = field_tables();
  const auto found = std::ranges::find(tables, path, &EndpointFields::path);
  check(found != tables.end(), cat("the endpoint ", path, " has no table of fields"));
  return *found;
}

}  // namespace troupe::launch::serve::api
