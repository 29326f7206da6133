#include "engine/constraints/repetition.h"

namespace troupe::engine::constraints {

Grammar::Node add_repeated(Grammar& grammar, Grammar::Node from, Grammar::Rule rule,
                           Repetitions counts) {
  if (counts.least == 1) from = grammar.call(from, rule);
  if (counts.least > 1) from = grammar.repeat(from, rule, counts.least, true);
  if (!counts.most) {
    const Grammar::Node loop = grammar.add_node();
    grammar.add_empty(from, loop);
    grammar.add_empty(grammar.call(loop, rule), loop);
    return loop;
  }
  const int more = *counts.most - counts.least;
  if (more == 0) return from;
  if (more > 1) return grammar.repeat(from, rule, more, false);
  const Grammar::Node to = grammar.call(from, rule);
  grammar.add_empty(from, to);
  return to;
}

}  // namespace troupe::engine::constraints
