// Normalization of mathematical answers, and numbers in plain and LaTeX notation.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe::actors::rules {

/// Normalizes LaTeX: removes dollar signs, \left, \right, spacing, units in \text{} at the end, a
/// leading "x =", an enclosing \text{} and outer braces; \dfrac becomes \frac.
std::string normalize_math(std::string_view answer);

/// A number read from a normalized answer.
struct Number {
  double value = 0;
  bool percent = false;
  std::string integer;  ///< sign and digits without leading zeros of an integer, else empty
};

/// Reads 12, -3.5, .5, 1,234,567, 1e-3, a/b, \frac{a}{b}, \frac12, 2\frac{1}{3}, each optionally
/// followed by % or a unit. A comma must separate thousands. Returns nullopt for anything else and
/// for a zero denominator.
std::optional<Number> read_number(std::string_view normalized);

}  // namespace troupe::actors::rules
