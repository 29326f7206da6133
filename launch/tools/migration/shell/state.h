// The variables and positional parameters of a script that is evaluated.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "launch/tools/migration/shell/limits.h"

namespace troupe::launch::tools::migration::shell {

/// A text that may not be known, because it depends on what a command prints or on what the script
/// is called with.
struct Value {
  std::string text;     ///< of an unknown value: with the expansions that are not known as written
  std::string unknown;  ///< why it is not known: "the output of `date` (line 3)"; empty: known
  std::string unset;    ///< a variable without a value that it has nothing of: "DIR (line 4)"
  /// Where in the text the first unknown part begins.
  std::size_t unknown_at = 0;
};

struct Variable {
  std::map<std::int64_t, Value> items;               ///< of a scalar: items[0]
  std::map<std::string, Value, std::less<>> by_key;  ///< of an associative array
  bool array = false, associative = false;
  std::string unknown;  ///< of an array whose items are not known
};

struct Positional {
  std::vector<Value> values;
  bool given = false;   ///< false: the script was named without arguments
  std::string unknown;  ///< why they are not known
};

class ShellState {
 public:
  /// `given` values are those of the environment, and of variables that are not known otherwise.
  explicit ShellState(std::map<std::string, std::string> given);

  const Variable* find(std::string_view name) const;
  /// The setters throw Failure (Errc::usage) where all values are too large.
  void set(const std::string& name, Value value);
  void set(const std::string& name, Variable variable);
  void set_item(const std::string& name, const std::string& index, Value value);
  void append(const std::string& name, const Value& value);
  void append(const std::string& name, std::vector<Value> values);
  void unset(const std::string& name);
  /// The value depends on something that is not known.
  void forget(const std::string& name, const std::string& why);

  void open_scope();
  void close_scope();
  /// The variable gets its former value back when the scope closes.
  void make_local(const std::string& name);

  Positional positional;
  std::string script_name;
  std::string directory;          ///< the working directory
  std::string directory_unknown;  ///< why it is not known
  std::string sourced;            ///< a file that may have set variables: "FILE.sh (line 2)"
  bool unset_is_error = false;    ///< set -u
  std::size_t bytes() const { return bytes_; }
  std::set<std::string> touched;  ///< names that were assigned or unset

 private:
  void put(const std::string& name, std::optional<Variable> variable);

  std::map<std::string, Variable, std::less<>> variables_;
  std::map<std::string, std::string> given_;
  std::vector<std::map<std::string, std::optional<Variable>>> scopes_;
  std::size_t bytes_ = 0;
};

/// The number that a text such as "12" is; nullopt for another text.
std::optional<std::int64_t> whole_number(std::string_view text);

}  // namespace troupe::launch::tools::migration::shell
