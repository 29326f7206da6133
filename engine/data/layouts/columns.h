// Columns: the members of a row under troupe's names, mapped from the names in the file.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json/json.h"

namespace troupe::engine::data {

/// Names of the members and roles of a conversation if they are not the default ones: role_tag and
/// content_tag are the members; user_tag, assistant_tag, system_tag, observation_tag and
/// function_tag (a call) are the roles (as in LLaMA-Factory and MindSpeed).
using Tags = std::map<std::string, std::string>;

/// The error of a malformed row, without its location.
tl::unexpected<Error> bad_row(std::string what);

class Columns {
 public:
  /// `names` maps troupe's name to the file's; dots descend into objects and, with numbers, into
  /// lists; "" means that the column is not used. All arguments outlive this.
  Columns(const Json& row, const std::map<std::string, std::string>& names, const Tags& tags)
      : row_(row), names_(names), tags_(tags) {}

  /// The member, or nullptr; null counts as absent. The member counts as read.
  const Json* find(const std::string& name) const;
  /// The same, but the member does not count as read.
  const Json* look(const std::string& name) const;
  const Json& row() const { return row_; }
  /// Whether the row has the member, which does not count as read.
  bool operator()(const std::string& name) const { return look(name) != nullptr; }
  /// Counts a member of the row, under its name in the file, as read: the whole of it, or, of a
  /// path with dots, what is at its end.
  void mark_read(const std::string& path) const { read_.insert(path); }
  /// Counts a member inside of one that has been read as not read. `path` has no numbers of items.
  void mark_unread(std::string path) const { unread_.insert(std::move(path)); }
  /// Names in the file of the members that are not null, have not been read and are not left out by
  /// a "" in `names`; of members that are read in part those of the rest, as paths with dots.
  std::vector<std::string> unread() const;
  /// Whether the row has the member, including null.
  bool has_key(const std::string& name) const { return row_.find(file_name(name)) != nullptr; }
  const Tags& tags() const { return tags_; }
  /// The first of these members that is present, or nullptr.
  const Json* first(std::initializer_list<const char*> names) const;
  /// The name of the first of these members that is present; the first name if none is.
  const char* first_name(std::initializer_list<const char*> names) const;
  /// The name of `name` in the file.
  std::string file_name(const std::string& name) const;
  /// The members of the row other than `used` (troupe's names), as an object.
  Json others(std::initializer_list<const char*> used) const;

  // Errc::bad_input with what was expected and found, without the location.
  Result<std::string> string(const std::string& name) const;
  /// "" when absent.
  Result<std::string> optional_string(const std::string& name) const;

 private:
  void add_unread(const std::string& path, const Json& value, std::vector<std::string>& out) const;

  const Json& row_;
  const std::map<std::string, std::string>& names_;
  const Tags& tags_;
  mutable std::set<std::string> read_;    ///< names in the file
  mutable std::set<std::string> unread_;  ///< paths inside of members that are read
};

/// Checks the keys of a column map and of a tag map. Errc::usage for unknown ones, with the most
/// similar known one.
Result<> check_column_names(const std::map<std::string, std::string>& names);
Result<> check_tag_names(const Tags& tags);

}  // namespace troupe::engine::data
