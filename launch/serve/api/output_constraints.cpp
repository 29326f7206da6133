#include "launch/serve/api/output_constraints.h"

#include <algorithm>

#include "engine/base/errors/check.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/constraints/compile.h"
#include "engine/tokenizer/token_bytes.h"
#include "launch/serve/api/failure.h"

namespace troupe::launch::serve::api {

using engine::constraints::Constraint;
using engine::constraints::Grammar;

namespace {

constexpr std::size_t kept_constraints = 16;
/// A constraint that has grown beyond is compiled again for its next request.
constexpr std::size_t kept_bytes = std::size_t{16} << 20;
constexpr double kept_work = 0.5;
/// Of all that are kept, wait or are used.
constexpr std::size_t max_bytes = std::size_t{256} << 20;

bool has_room(const Constraint& constraint) {
  return constraint.bytes() < kept_bytes && constraint.used_work() < kept_work;
}

Result<Grammar> compile_grammar(const ConstraintText& text, std::vector<std::string>& notes) {
  switch (text.kind) {
    case ConstraintKind::schema:
      return engine::constraints::compile_schema(text.value, text.before, &notes);
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

/// The table is never replaced.
const std::string& OutputConstraints::bytes_of(std::int32_t token) {
  const std::lock_guard lock(mutex_);
  return table().tokens->bytes_of(token);
}

bool OutputConstraints::drops_first_space() {
  const std::lock_guard lock(mutex_);
  return table().drops_first_space;
}

std::shared_ptr<const engine::constraints::TokenTable> OutputConstraints::tokens() {
  const std::lock_guard lock(mutex_);
  return table().tokens;
}

/// Once each, and a bounded number of them: a client cannot fill the log.
void OutputConstraints::log_notes(const std::vector<std::string>& notes) {
  constexpr std::size_t max_logged = 100;
  const std::lock_guard lock(mutex_);
  for (const std::string& each : notes) {
    if (logged_.size() >= max_logged || !logged_.insert(each).second) continue;
    log_warning(cat("JSON schemas: ", each));
  }
}

Result<std::shared_ptr<Constraint>> OutputConstraints::compile_alone(const ConstraintText& text) {
  std::vector<std::string> notes;
  auto grammar = compile_grammar(text, notes);
  RETURN_IF_ERROR(grammar);
  log_notes(notes);
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
    if (found != latest_.end() && has_room(*found->compiled)) {
      latest_.splice(latest_.begin(), latest_, found);
      return *found;
    }
    if (found != latest_.end()) latest_.erase(found);
  }
  auto compiled = compile_alone(text);
  RETURN_IF_ERROR(compiled);
  OutputConstraint made{std::move(*compiled), std::move(source)};
  const std::lock_guard lock(mutex_);
  check_room(made);
  latest_.push_front(made);
  if (latest_.size() > kept_constraints) latest_.pop_back();
  alive_.emplace_back(made.compiled, made.source);
  return made;
}

/// With the mutex held. Drops those that are only kept, the oldest first.
void OutputConstraints::check_room(const OutputConstraint& made) {
  const auto bytes_of = [](const OutputConstraint& each) {
    return each.compiled->bytes() + each.source->size();
  };
  const auto sum = [&] {
    std::erase_if(alive_, [](const auto& each) { return each.first.expired(); });
    std::size_t bytes = bytes_of(made);
    for (const auto& [compiled, source] : alive_)
      if (const auto constraint = compiled.lock()) bytes += constraint->bytes() + source->size();
    return bytes;
  };
  while (sum() > max_bytes) {
    if (latest_.empty()) {
      const Error error{Errc::full, cat("the constraints of all requests need more than ",
                                        max_bytes >> 20, " MiB; try again later")};
      throw ApiFailure(status_of(error.code), error_body(error));
    }
    latest_.pop_back();
  }
}

}  // namespace troupe::launch::serve::api
