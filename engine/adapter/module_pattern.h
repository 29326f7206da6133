// Whether a module's name is meant by a name, the end of one, or a regular expression: PEFT's rules
// (peft/tuners/tuners_utils.py).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/tokenizer/regex.h"

namespace troupe::engine::adapter {

class ModulePattern {
 public:
  /// Errc::bad_input, unsupported for a regular expression that cannot be read.
  static Result<ModulePattern> create(const std::string& text, const std::string& where);
  static bool is_plain(std::string_view text);

  const std::string& text() const { return text_; }
  /// The name itself, or its end after a dot; of a regular expression, the whole name.
  bool fits(const std::string& module) const;
  /// For rank_pattern and alpha_pattern a regular expression, too, may fit an end after a dot.
  bool fits_end(const std::string& module) const;

 private:
  std::string text_;
  std::optional<tokenizer::Regex> regex_;
};

Result<std::vector<ModulePattern>> patterns_of(const std::vector<std::string>& texts,
                                               const std::string& where);

}  // namespace troupe::engine::adapter
