// Bounds of the lists in SamplingParams, which validate() checks, and readers before they copy.
#pragma once

#include <cstddef>

namespace troupe::engine::generate {

inline constexpr std::size_t max_stop_strings = 64, max_stop_string_bytes = 1024,
                             max_stop_tokens = 1024;
/// Texts of bad_words, which are encoded.
inline constexpr std::size_t max_bad_words = 1024, max_bad_word_bytes = 1024;
inline constexpr std::size_t max_token_lists = 1 << 16;  ///< of TokenRules

}  // namespace troupe::engine::generate
