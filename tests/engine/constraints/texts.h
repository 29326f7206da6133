// Helpers of the tests of constraints: whether a grammar has a text, and random texts of a grammar.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "engine/constraints/automaton.h"
#include "engine/constraints/compile.h"
#include "engine/constraints/constraint.h"

namespace troupe::test {

namespace constraints = engine::constraints;

inline bool matches(constraints::Automaton& automaton, std::string_view text) {
  auto state = automaton.start();
  for (const char byte : text) {
    state = automaton.step(state, static_cast<unsigned char>(byte));
    if (state == constraints::Automaton::dead) return false;
  }
  return automaton.accepts(state);
}

inline bool matches(Result<constraints::Grammar> grammar, std::string_view text) {
  constraints::Automaton automaton(value_or_throw(std::move(grammar)), {});
  return matches(automaton, text);
}

/// All bytes, and pieces that JSON has often; token 0 has no bytes.
inline std::shared_ptr<const constraints::TokenTable> small_vocabulary() {
  std::vector<std::string> tokens = {""};
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* piece : {"\", \"", "\": ", "{\"", "\"}", "true", "tru", "null", "[]", "12", "-1",
                            "the", "\xC3\xA9", "\\u00", "\": [", "\n\n", "aa", "}}", ".5"})
    tokens.emplace_back(piece);
  return std::make_shared<const constraints::TokenTable>(std::move(tokens));
}

/// A text of tokens that the constraint allows, drawn uniformly; "" with `whole` false when it has
/// not ended after `most` tokens.
struct DrawnText {
  std::string text;
  bool whole = false;
};
inline DrawnText draw(constraints::Constraint& constraint, const constraints::TokenTable& table,
                      std::mt19937& random, int most) {
  DrawnText out;
  auto state = constraint.start();
  for (int step = 0; step < most; ++step) {
    const auto mask = constraint.allowed(state);
    std::vector<std::int32_t> allowed;
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(table.size()); ++id)
      if (mask->has(id)) allowed.push_back(id);
    if (constraint.may_end(state)) allowed.push_back(-1);
    if (allowed.empty()) return out;
    const std::int32_t token = allowed[random() % allowed.size()];
    if (token < 0) {
      out.whole = true;
      return out;
    }
    out.text += table.bytes_of(token);
    state = constraint.after(state, token);
    if (state == constraints::Automaton::dead) return out;
  }
  return out;
}

}  // namespace troupe::test
