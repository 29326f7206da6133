// Columns: a row's members under our names, whatever the file calls them.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "engine/base/json.h"

namespace troupe::engine::data {

class Columns {
 public:
  /// `names`: our name to the file's, dots going into objects. Both outlive this.
  Columns(const Json& row, const std::map<std::string, std::string>& names) : row_(row), names_(names) {}

  /// The member, or nullptr; null counts as absent.
  const Json* find(const std::string& name) const;
  const Json& row() const { return row_; }
  bool operator()(const std::string& name) const { return find(name) != nullptr; }
  /// The first of the names that is there, or nullptr.
  const Json* first(std::initializer_list<const char*> names) const;
  /// What the file calls `name`.
  std::string file_name(const std::string& name) const;
  /// Members of the row that none of `used` (our names) stands for, as an object.
  Json others(std::initializer_list<const char*> used) const;

  // Errc::bad_input: what was expected and found, without the place.
  Result<std::string> string(const std::string& name) const;
  /// "" when absent.
  Result<std::string> optional_string(const std::string& name) const;

 private:
  const Json& row_;
  const std::map<std::string, std::string>& names_;
};

/// The names that a column map may have on its left. Errc::usage for others, with the nearest.
Result<> check_column_names(const std::map<std::string, std::string>& names);

}  // namespace troupe::engine::data
