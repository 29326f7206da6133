// Grammars in EBNF, as in llama.cpp (GBNF): rules NAME ::= ALTERNATIVES, the first of which is
// `root`.
//
// Supported: "literals", [classes] with ranges and negation, ., names, (groups), |, *, +, ?, {m},
// {m,}, {m,n}, spaces before and in them, # comments; escapes \n \r \t \\ \" \[ \] \- \^ \xHH
// \uHHHH \UHHHHHHHH. An alternative continues on the next line inside parentheses or behind a |.
#pragma once

#include <string_view>

#include "engine/constraints/grammar.h"

namespace troupe::engine::constraints {

/// Adds the rules of `text` (UTF-8) and returns that of `root`. Throws Failure: Errc::bad_input
/// with the line for mistakes, full beyond the bounds.
Grammar::Rule add_ebnf(Grammar& grammar, std::string_view text);

}  // namespace troupe::engine::constraints
