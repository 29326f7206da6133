// Variables: what a shell script assigns, and its words with variables replaced. Both are bounded:
// a line that repeats a variable ten times multiplies its value by ten.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "engine/base/error.h"

namespace troupe::launch {

class Variables {
 public:
  /// Bytes of the values of all variables, and of all words of a script with variables replaced.
  static constexpr std::size_t max_bytes = std::size_t{1} << 20, max_expanded = 4 * max_bytes;
  /// Defaults of variables within defaults of variables.
  static constexpr int max_depth = 64;

  /// Errc::usage if the values of all variables are too large.
  Result<> assign(const std::string& name, std::string value);

  /// `word` with $NAME and ${NAME} replaced by what was assigned, and ${NAME:-DEFAULT} otherwise by
  /// its default, in which variables are replaced; other variables stay. In linear time.
  /// Errc::usage for a result that is too large or defaults that are nested too deeply.
  Result<std::string> expand(std::string_view word);

 private:
  Result<> append(std::string_view word, std::string& out) const;
  const std::string* find(std::string_view name) const;

  std::map<std::string, std::string, std::less<>> values_{{"HOME", "~"}};
  std::size_t bytes_ = 0, expanded_ = 0;
};

}  // namespace troupe::launch
