// Mathematical answers: found in a completion, and compared as numbers where they are numbers.
// Everything is one pass over bytes: no expression is evaluated, so no answer, however long or
// deeply nested, costs more than its length. Sources: GSM8K's "####" (Cobbe et al. 2021), MATH's
// \boxed and its list of spellings that mean the same (Hendrycks et al. 2021, hendrycks/math
// modeling/math_equivalence.py).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe::actors::rules {

/// The text after the last "####", up to the end of its line, trimmed; nothing without the mark.
std::optional<std::string_view> after_hashes(std::string_view text);

/// The last number of a text ("1,234.5", "-3"; a full stop that ends a sentence is not part of it),
/// or nothing.
std::optional<std::string_view> last_number(std::string_view text);

/// What the last \boxed{...} or \fbox{...} holds, braces balanced; nothing when there is none or it
/// does not end.
std::optional<std::string_view> last_boxed(std::string_view text);

/// One spelling for the many of LaTeX: dollar signs, \left, \right, spacing, \dfrac, units in
/// \text{} at the end, "x =" before, a lone \text{} and outer braces removed.
std::string normalize_math(std::string_view answer);

/// A number read from a normalised answer.
struct Number {
  double value = 0;
  bool percent = false;
  std::string integer;  ///< sign and digits without leading zeros when it is a whole number written
                        ///< as one, else empty
};

/// Reads 12, -3.5, .5, 1,234,567, 1e-3, a/b, \frac{a}{b}, \frac12, 2\frac{1}{3}, each also with %
/// or a unit behind. A comma must separate thousands. Nothing for anything else, and for a zero
/// denominator.
std::optional<Number> read_number(std::string_view normalized);

/// Equal after normalisation, letter for letter, or as numbers: whole numbers digit by digit,
/// others within `tolerance`, relative. A percentage equals its own number and its hundredth: 50%
/// is 50 and is 0.5.
bool same_answer(std::string_view a, std::string_view b, double tolerance = 1e-9);

}  // namespace troupe::actors::rules
