// Regular expressions of tokenizer.json, which are written for Oniguruma, run by PCRE2 (compiled to
// machine code, with a limit on backtracking).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/error.h"

namespace troupe::engine::tokenizer {

/// A half-open range of bytes.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool operator==(const Range&) const = default;
};

class Regex {
 public:
  /// Errc::bad_input when the pattern is malformed, Errc::unsupported when Oniguruma means
  /// something that PCRE2 cannot say; `where` starts the message.
  static Result<Regex> compile(std::string_view pattern, std::string_view where);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  /// Appends every match in `text` (valid UTF-8), left to right, empty ones too, as Oniguruma's
  /// find_iter gives them. Safe from several threads. Throws Failure (Errc::bad_input) when a match
  /// exceeds the limit on backtracking.
  void find_all(std::string_view text, std::vector<Range>& out) const;

 private:
  struct Code;
  explicit Regex(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code_;
};

/// The pattern in PCRE2's dialect. Differences that matter: \s is White_Space, \w is UTS 18's, \h
/// is a hexadecimal digit, (?m) lets the dot match newlines, X{n,m}+ is a repeat of a repeat.
/// Source: Oniguruma doc/RE. Errc::unsupported for nested or intersected classes.
Result<std::string> translate_oniguruma(std::string_view pattern, std::string_view where);

}  // namespace troupe::engine::tokenizer
