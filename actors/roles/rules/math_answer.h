// Mathematical answers: extraction from a completion, and comparison. Each function makes one pass
// over the bytes and evaluates no expression, so long or deeply nested answers cost linear time.
// Sources: GSM8K's "####" (Cobbe et al. 2021), MATH's \boxed and its list of spellings that mean
// the same (Hendrycks et al. 2021, hendrycks/math modeling/math_equivalence.py).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe::actors::rules {

/// Returns the text after the last "####" up to the end of its line, trimmed; nullopt without the
/// mark.
std::optional<std::string_view> after_hashes(std::string_view text);

/// Returns the last number of a text ("1,234.5", "-3") without the full stop of a sentence, or
/// nullopt.
std::optional<std::string_view> last_number(std::string_view text);

/// Returns the content of the last \boxed{...} or \fbox{...} with balanced braces; without one,
/// what follows the last "\boxed " up to a dollar sign or the end of the line, unless it is a word;
/// or nullopt.
std::optional<std::string_view> last_boxed(std::string_view text);

/// Whether two answers are equal: as normalized text, in MATH's normal form
/// (published_math.h), or as numbers (integers exactly, others
/// within the relative `tolerance`). A percentage equals its number and a hundredth of it: 50%
/// equals 50 and 0.5.
bool same_answer(std::string_view a, std::string_view b, double tolerance = 1e-9);

}  // namespace troupe::actors::rules
