#include "launch/serve/api/output_constraints.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/text.h"
#include "engine/constraints/compile.h"
#include "engine/tokenizer/token_bytes.h"

namespace troupe::launch::api {

using engine::constraints::Constraint;
using engine::constraints::Grammar;

namespace {

constexpr std::size_t kept_constraints = 16;
/// A constraint that has grown beyond is compiled again for its next request.
constexpr std::size_t kept_bytes = std::size_t{40} << 20;

Result<Grammar> compile_grammar(const ConstraintText& text) {
  switch (text.kind) {
    case ConstraintKind::schema:
      return engine::constraints::compile_schema(text.value, text.before);
    case ConstraintKind::regex:
      return engine::constraints::compile_regex(text.value.string(), text.before);
    case ConstraintKind::grammar:
      return engine::constraints::compile_ebnf(text.value.string(), text.before);
    case ConstraintKind::choice:
      break;
  }
  std::vector<std::string> choices;
  for (const Json& each : text.value.array()) choices.push_back(each.string());
  return engine::constraints::compile_choice(choices, text.before);
}

}  // namespace

std::string serialized(const ConstraintText& text) {
  return cat(static_cast<int>(text.kind), static_cast<int>(text.before), text.value.dump());
}

ConstraintText deserialized(const std::string& text) {
  constexpr std::size_t digits = 2;
  check(text.size() > digits, "a serialized constraint begins with two digits");
  return {.kind = static_cast<ConstraintKind>(text[0] - '0'),
          .value = value_or_throw(parse_json(text.substr(digits), "a constraint")),
          .field = "",
          .before = static_cast<engine::constraints::Reasoning>(text[1] - '0')};
}

/// With the mutex held.
const OutputConstraints::Table& OutputConstraints::table() {
  if (!table_) {
    auto found = engine::tokenizer::token_bytes(tokenizer_, static_cast<std::size_t>(vocabulary_));
    table_ = Table{std::make_shared<const engine::constraints::TokenTable>(std::move(found.bytes)),
                   found.drops_first_space};
  }
  return *table_;
}

bool OutputConstraints::drops_first_space() {
  const std::lock_guard lock(mutex_);
  return table().drops_first_space;
}

std::shared_ptr<const engine::constraints::TokenTable> OutputConstraints::tokens() {
  const std::lock_guard lock(mutex_);
  return table().tokens;
}

Result<std::shared_ptr<Constraint>> OutputConstraints::compile_alone(const ConstraintText& text) {
  auto grammar = compile_grammar(text);
  RETURN_IF_ERROR(grammar);
  try {
    return std::make_shared<Constraint>(std::move(*grammar), tokens());
  } catch (const Failure& failure) {
    return fail(failure);
  }
}

Result<OutputConstraint> OutputConstraints::compile(const ConstraintText& text) {
  auto source = std::make_shared<const std::string>(serialized(text));
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(
        latest_, [&](const OutputConstraint& each) { return *each.source == *source; });
    if (found != latest_.end() && found->compiled->bytes() < kept_bytes) {
      latest_.splice(latest_.begin(), latest_, found);
      return *found;
    }
    if (found != latest_.end()) latest_.erase(found);
  }
  auto compiled = compile_alone(text);
  RETURN_IF_ERROR(compiled);
  OutputConstraint made{std::move(*compiled), std::move(source)};
  const std::lock_guard lock(mutex_);
  latest_.push_front(made);
  if (latest_.size() > kept_constraints) latest_.pop_back();
  return made;
}

}  // namespace troupe::launch::api
