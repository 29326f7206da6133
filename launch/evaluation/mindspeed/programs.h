// Programs of HumanEval from generated texts (eval_impl/human_eval.py and eval_utils/human_utils.py
// of MindSpeed-LLM).
#pragma once

#include <string>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"

namespace troupe::launch::evaluation::mindspeed {

/// HumanEval, direct: the lines of prompt, four spaces and answer that are the function and what it
/// needs, with the tests of a row. `fixed`: the function's name ends at its parenthesis, so lines
/// behind the function are left out.
std::string human_eval_program(const Json& row, const std::string& answer, bool fixed);
/// Alternative: the first fenced block of an answer, if it has one, behind the prompt.
Result<std::string> human_eval_fenced(const Json& row, const std::string& answer);

}  // namespace troupe::launch::evaluation::mindspeed
