// ModulePattern: a module's name, the end of one, or a regular expression, matched by PEFT's rules
// (peft/tuners/tuners_utils.py).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/tokenizer/base/regex.h"

namespace troupe::engine::adapter {

class ModulePattern {
 public:
  /// Errc::bad_input, unsupported for a regular expression that cannot be read.
  static Result<ModulePattern> create(const std::string& text, const std::string& where);
  static bool is_plain(std::string_view text);

  const std::string& text() const { return text_; }
  /// Whether the pattern is the name or its end after a dot; a regular expression must match the
  /// whole name.
  bool matches(const std::string& module) const;
  /// Like matches(), but a regular expression may also match an end after a dot (rank_pattern,
  /// alpha_pattern).
  bool matches_suffix(const std::string& module) const;

 private:
  std::string text_;
  std::optional<tokenizer::Regex> regex_;
};

Result<std::vector<ModulePattern>> patterns_of(const std::vector<std::string>& texts,
                                               const std::string& where);

}  // namespace troupe::engine::adapter
