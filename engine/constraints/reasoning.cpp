#include "engine/constraints/reasoning.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::engine::constraints {

namespace {

constexpr std::string_view opening = "<think>", closing = "</think>";

/// All bytes but those of `without`, which are in order.
void add_other_bytes(Grammar& grammar, Grammar::Node from, std::string_view without,
                     Grammar::Node to) {
  int low = 0;
  for (const char each : without) {
    const int byte = static_cast<unsigned char>(each);
    if (low < byte)
      grammar.add_bytes(from, static_cast<unsigned char>(low), static_cast<unsigned char>(byte - 1),
                        to);
    low = byte + 1;
  }
  grammar.add_bytes(from, static_cast<unsigned char>(low), 255, to);
}

/// Text to the first closing mark, inclusive: the automaton of Knuth, Morris and Pratt. '<' is only
/// at the beginning of the mark, so that a byte that does not continue it begins it or nothing.
Grammar::Node add_thought(Grammar& grammar, Grammar::Node from) {
  std::vector<Grammar::Node> matched{from};  // by the bytes of the mark that were read
  for (std::size_t n = 0; n < closing.size(); ++n) matched.push_back(grammar.add_node());
  for (std::size_t n = 0; n < closing.size(); ++n) {
    const auto next = static_cast<unsigned char>(closing[n]);
    grammar.add_bytes(matched[n], next, next, matched[n + 1]);
    if (n == 0) {
      add_other_bytes(grammar, matched[n], "<", matched[0]);
      continue;
    }
    grammar.add_bytes(matched[n], '<', '<', matched[1]);
    std::string both{'<', closing[n]};
    std::ranges::sort(both);
    add_other_bytes(grammar, matched[n], both, matched[0]);
  }
  return matched.back();
}

}  // namespace

Grammar::Rule add_reasoning(Grammar& grammar, Grammar::Rule rule, Reasoning before) {
  if (before == Reasoning::none) return rule;
  const Grammar::Rule whole = grammar.add_rule();
  const Grammar::Node begin = grammar.begin(whole), end = grammar.end(whole);
  const Grammar::Node thought = grammar.add_node();
  grammar.add_empty(before == Reasoning::open ? begin : grammar.text(begin, opening), thought);
  grammar.add_empty(grammar.call(add_thought(grammar, thought), rule), end);
  if (before == Reasoning::optional) grammar.add_empty(grammar.call(begin, rule), end);
  return whole;
}

}  // namespace troupe::engine::constraints
