// OutputConstraints: compiled constraints of a served model; requests with the same constraint
// share it.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "engine/base/json.h"
#include "engine/constraints/constraint.h"
#include "engine/constraints/reasoning.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe::launch::api {

enum class ConstraintKind : std::uint8_t { schema, regex, choice, grammar };

/// A constraint as a request states it.
struct ConstraintText {
  ConstraintKind kind = ConstraintKind::schema;
  Json value;         ///< the schema, the list of choices, or the text of an expression or grammar
  std::string field;  ///< of the request, for messages
  engine::constraints::Reasoning before = engine::constraints::Reasoning::none;
};

/// Every function may be called from several threads at once.
class OutputConstraints {
 public:
  /// `tokenizer` must outlive this.
  OutputConstraints(const engine::tokenizer::Tokenizer& tokenizer, std::int64_t vocabulary)
      : tokenizer_(tokenizer), vocabulary_(vocabulary) {}

  /// Errors of compile_schema() and the like.
  Result<std::shared_ptr<engine::constraints::Constraint>> compile(const ConstraintText& text);
  /// Whether decoding drops a space at the beginning of a text.
  bool drops_first_space();

 private:
  struct Table {
    std::shared_ptr<const engine::constraints::TokenTable> tokens;
    bool drops_first_space = false;
  };
  const Table& table();

  const engine::tokenizer::Tokenizer& tokenizer_;
  std::int64_t vocabulary_;
  std::mutex mutex_;  // of what follows
  std::optional<Table> table_;
  /// The latest ones, by kind and text; the last used first.
  std::list<std::pair<std::string, std::shared_ptr<engine::constraints::Constraint>>> latest_;
};

}  // namespace troupe::launch::api
