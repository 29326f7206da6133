// Regular expressions of tokenizer.json, which are written for Oniguruma, and of evaluation tasks,
// which are written for Python, run by PCRE2 (compiled to machine code, with a limit on
// backtracking).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/errors/error.h"

namespace troupe::engine::tokenizer {

/// A half-open range of bytes.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool operator==(const Range&) const = default;
};

/// Bounds the time of the slow searches in the parts of one text of `bytes`, on this thread while
/// it lives: they share what one search of the text may take.
class SearchTime {
 public:
  explicit SearchTime(std::size_t bytes);
  ~SearchTime();
  SearchTime(const SearchTime&) = delete;

 private:
  std::uint64_t left_;
  std::uint64_t* outer_;
};

enum class RegexSyntax { oniguruma, python };

class Regex {
 public:
  /// Errc::bad_input when the pattern is malformed, Errc::unsupported if PCRE2 has no
  /// equivalent of a construct; `where` starts the message.
  static Result<Regex> compile(std::string_view pattern, std::string_view where,
                               RegexSyntax syntax = RegexSyntax::oniguruma);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  /// Appends every match in `text` (valid UTF-8), from left to right, including empty ones, as
  /// Oniguruma's find_iter. Safe from several threads. Throws Failure (Errc::bad_input) when a
  /// match exceeds the limit on backtracking.
  void find_all(std::string_view text, std::vector<Range>& out) const;
  /// Every match as Python's re.finditer returns them: the ranges of the whole match and of each
  /// group, empty for a group that took no part. Errc::bad_input as find_all(), but as a value.
  Result<std::vector<std::vector<Range>>> find_groups(std::string_view text) const;

 private:
  struct Code;
  explicit Regex(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code_;
};

}  // namespace troupe::engine::tokenizer
