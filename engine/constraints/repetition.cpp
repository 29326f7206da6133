#include "engine/constraints/repetition.h"

namespace troupe::engine::constraints {

Grammar::Node add_repeated(Grammar& grammar, Grammar::Node from, Grammar::Rule rule,
                           Repetitions counts) {
  for (int i = 0; i < counts.least; ++i) from = grammar.call(from, rule);
  if (!counts.most) {
    const Grammar::Node loop = grammar.add_node();
    grammar.add_empty(from, loop);
    grammar.add_empty(grammar.call(loop, rule), loop);
    return loop;
  }
  const Grammar::Node to = grammar.add_node();
  for (int i = counts.least; i < *counts.most; ++i) {
    grammar.add_empty(from, to);
    from = grammar.call(from, rule);
  }
  grammar.add_empty(from, to);
  return to;
}

}  // namespace troupe::engine::constraints
