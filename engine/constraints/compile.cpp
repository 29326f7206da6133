#include "engine/constraints/compile.h"

#include "engine/base/text/text.h"
#include "engine/constraints/ebnf.h"
#include "engine/constraints/json_schema.h"
#include "engine/constraints/regex.h"

namespace troupe::engine::constraints {

namespace {

/// About half a second.
constexpr std::uint64_t max_work = 10'000'000;

template <class Add>
Result<Grammar> compile(Reasoning before, Add add) {
  try {
    CompileWork work(max_work);
    Grammar grammar(&work);
    grammar.set_root(add_reasoning(grammar, add(grammar), before));
    RETURN_IF_ERROR(grammar.finish());
    return grammar;
  } catch (const Failure& failure) {
    return fail(failure);
  }
}

}  // namespace

Result<Grammar> compile_schema(const Json& schema, Reasoning before,
                               std::vector<std::string>* notes) {
  std::vector<std::string> names;
  auto& found = notes == nullptr ? names : *notes;
  return compile(before, [&](Grammar& grammar) { return add_json_schema(grammar, schema, found); });
}

Result<Grammar> compile_regex(std::string_view pattern, Reasoning before) {
  return compile(before, [&](Grammar& grammar) {
    const Grammar::Rule rule = grammar.add_rule();
    const Grammar::Node end = add_regex(grammar, grammar.begin(rule), pattern, TextForm::plain);
    grammar.add_empty(end, grammar.end(rule));
    return rule;
  });
}

Result<Grammar> compile_ebnf(std::string_view text, Reasoning before) {
  return compile(before, [&](Grammar& grammar) { return add_ebnf(grammar, text); });
}

Result<Grammar> compile_choice(const std::vector<std::string>& texts, Reasoning before) {
  return compile(before, [&](Grammar& grammar) {
    const Grammar::Rule rule = grammar.add_rule();
    grammar.add_empty(grammar.texts(grammar.begin(rule), texts), grammar.end(rule));
    return rule;
  });
}

}  // namespace troupe::engine::constraints
