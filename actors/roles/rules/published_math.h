// The published graders of two data sets, as they are, beside the rules of math_answer.h: GSM8K's
// (Cobbe et al. 2021, openai/grade-school-math dataset.py) and MATH's (Hendrycks et al. 2021,
// hendrycks/math math_equivalence.py, with "\boxed 5" and "\sqrt[3]" as in lm-evaluation-harness'
// hendrycks_math/utils.py). Time is linear in the text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe::actors::rules {

/// The number after the first "#### ", without commas: the longest prefix of -, digits, commas and
/// points ("18" of "#### 18 dollars", "18." of "#### 18."). nullopt without one.
std::optional<std::string> gsm8k_answer(std::string_view text);

/// What follows the last "\boxed " up to a dollar sign, if the text has one; else the content of
/// the last \boxed{...}, counting all braces. nullopt without one.
std::optional<std::string_view> math_boxed(std::string_view text);

/// The form in which MATH compares answers (_strip_string): without spaces, \left, \right, degrees,
/// percent and dollar signs, units in \text{ }, "x ="; \frac12, 1/2 and 0.5 as \frac{1}{2}, \sqrt2
/// as \sqrt{2}. nullopt where the published code fails ("\frac" at the end).
std::optional<std::string> math_normal_form(std::string_view answer);

/// Whether two answers have the same form, or are the same text.
bool math_equivalent(std::string_view a, std::string_view b);

}  // namespace troupe::actors::rules
