// Long runs of combining marks, put into canonical order before a text is normalized.
#pragma once

#include <unicode/normalizer2.h>

#include <string>
#include <string_view>

namespace troupe::engine::tokenizer {

/// Sorts each run of many combining marks by their combining class (Unicode 3.11, D108-D109), after
/// decomposing them, which does not change what `form` makes of the text. ICU sorts marks by
/// insertion, in quadratic time for a run; the marks of a sorted run stay where they are. Time
/// grows as n log n. `form` has the classes and the decompositions.
class MarkRuns {
 public:
  explicit MarkRuns(const icu::Normalizer2& form) : form_(form) {}
  void sort(std::string& text) const;

 private:
  bool is_mark(char32_t c) const;
  std::string sorted(std::string_view run) const;
  const icu::Normalizer2& form_;
};

}  // namespace troupe::engine::tokenizer
