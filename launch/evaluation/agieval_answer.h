// Comparison of AGIEval's answers that are formulas (ruixiangcui/AGIEval, src/math_equivalence.py
// and post_process.py, as lm-evaluation-harness has them in tasks/agieval/utils.py).
#pragma once

#include <optional>
#include <string>

namespace troupe::launch::evaluation {

/// parse_math_answer(): what is in the last \boxed{}, between dollar signs, after the last "=", or
/// the last number. nullopt without an answer.
std::optional<std::string> agieval_formula(const std::string& text);

/// is_equiv(): whether both texts have the same answer in MATH's normal form.
bool same_agieval_answer(const std::string& answer, const std::string& gold);

}  // namespace troupe::launch::evaluation
