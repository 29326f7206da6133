// "Replace" of tokenizer.json: every match of a string or a regular expression becomes a fixed
// text.
#pragma once

#include <optional>
#include <string>

#include "engine/base/errors/error.h"
#include "engine/tokenizer/base/regex.h"

namespace troupe {
class Json;
}

namespace troupe::engine::tokenizer {

/// The pattern of Split and Replace: {"String": text} or {"Regex": text}.
class Pattern {
 public:
  static Result<Pattern> from_json(const Json* pattern, std::string_view where);
  /// A fixed text; not empty.
  static Pattern literal(std::string text);
  void find_all(std::string_view text, std::vector<Range>& out) const;
  /// The fixed text, or nullptr for a regular expression.
  const std::string* text() const { return regex_ ? nullptr : &text_; }

 private:
  std::string text_;
  std::optional<Regex> regex_;
};

class Replacement {
 public:
  /// Reads an object with "pattern" and "content".
  static Result<Replacement> from_json(const Json& object, std::string_view where);
  Replacement(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  /// Returns true if the beginning of `text` was removed. Throws Failure (Errc::bad_input), which
  /// names `who`, if the text becomes longer than `limit` bytes.
  bool apply(std::string& text, std::size_t limit, std::string_view who) const;
  const Pattern& pattern() const { return pattern_; }

 private:
  Pattern pattern_;
  std::string content_;
};

}  // namespace troupe::engine::tokenizer
