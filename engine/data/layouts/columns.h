// Columns: a row's members under our names, whatever the file calls them.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "engine/base/json.h"

namespace troupe::engine::data {

/// How a conversation's members and roles are called where they are called otherwise: role_tag and
/// content_tag name the members, user_tag, assistant_tag, system_tag, observation_tag and
/// function_tag (a call) the roles (the words of LLaMA-Factory and MindSpeed).
using Tags = std::map<std::string, std::string>;

class Columns {
 public:
  /// `names`: our name to the file's, dots going into objects and, with numbers, into lists; "" is
  /// a column that is not used. All outlive this.
  Columns(const Json& row, const std::map<std::string, std::string>& names, const Tags& tags)
      : row_(row), names_(names), tags_(tags) {}

  /// The member, or nullptr; null counts as absent.
  const Json* find(const std::string& name) const;
  const Json& row() const { return row_; }
  bool operator()(const std::string& name) const { return find(name) != nullptr; }
  /// Whether the row has the member, be it null.
  bool has_key(const std::string& name) const { return row_.find(file_name(name)) != nullptr; }
  const Tags& tags() const { return tags_; }
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
  const Tags& tags_;
};

/// The names that a column map, and one of tags, may have on its left. Errc::usage for others, with
/// the nearest.
Result<> check_column_names(const std::map<std::string, std::string>& names);
Result<> check_tag_names(const Tags& tags);

}  // namespace troupe::engine::data
