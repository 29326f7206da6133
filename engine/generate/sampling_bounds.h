// Bounds of SamplingParams: of its lists, which validate() checks, and readers before they copy;
// and of its numbers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/base/json/fields.h"

namespace troupe::engine::generate {

inline constexpr std::size_t max_stop_strings = 64, max_stop_string_bytes = 1024,
                             max_stop_tokens = 1024;
/// Texts of bad_words, which are encoded.
inline constexpr std::size_t max_bad_words = 1024, max_bad_word_bytes = 1024;
inline constexpr std::size_t max_token_lists = 1 << 16;  ///< of TokenRules

/// "top_p is 3; allowed: above 0, at most 1" for the first number outside the range, or "".
template <class T>
std::string out_of_range(std::string_view name, const T& value, const Range& range) {
  std::string why;
  each_number(value, [&](double each, bool) {
    if (why.empty() && !contains(range, each))
      why = cat(name, " is ", each, "; allowed: ", range_text(range));
  });
  return why;
}

}  // namespace troupe::engine::generate
