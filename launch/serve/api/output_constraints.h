// OutputConstraints: compiled constraints of a served model; requests with the same constraint
// share it.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/constraints/constraint.h"
#include "engine/constraints/reasoning.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe::launch::serve::api {

enum class ConstraintKind : std::uint8_t { schema, regex, choice, grammar };

/// A constraint as a request states it.
struct ConstraintText {
  ConstraintKind kind = ConstraintKind::schema;
  Json value;         ///< the schema, the list of choices, or the text of an expression or grammar
  std::string field;  ///< of the request, for messages
  engine::constraints::Reasoning before = engine::constraints::Reasoning::none;
};

/// A constraint as one text, and back. The latter throws Failure for other texts.
std::string serialized(const ConstraintText& text);
ConstraintText deserialized(const std::string& text);

struct OutputConstraint {
  std::shared_ptr<engine::constraints::Constraint> compiled;  ///< nullptr: every output is allowed
  std::shared_ptr<const std::string> source;                  ///< serialized()
};

/// Every function may be called from several threads at once.
class OutputConstraints {
 public:
  /// `tokenizer` must outlive this.
  OutputConstraints(const engine::tokenizer::Tokenizer& tokenizer, std::int64_t vocabulary)
      : tokenizer_(tokenizer), vocabulary_(vocabulary) {}

  /// Errors of compile_schema() and the like. Throws ApiFailure (429) when the constraints of all
  /// requests need too much memory.
  Result<OutputConstraint> compile(const ConstraintText& text);
  /// compile() of one that no other request uses.
  Result<std::shared_ptr<engine::constraints::Constraint>> compile_alone(
      const ConstraintText& text);
  /// The bytes that a token adds inside a text; "" where a decoded text does not show it.
  const std::string& bytes_of(std::int32_t token);
  /// Whether decoding drops a space at the beginning of a text.
  bool drops_first_space();

 private:
  struct Table {
    std::shared_ptr<const engine::constraints::TokenTable> tokens;
    bool drops_first_space = false;
  };
  const Table& table();
  void log_notes(const std::vector<std::string>& notes);
  void check_room(const OutputConstraint& made);
  std::shared_ptr<const engine::constraints::TokenTable> tokens();

  const engine::tokenizer::Tokenizer& tokenizer_;
  std::int64_t vocabulary_;
  std::mutex mutex_;  // of what follows
  std::optional<Table> table_;
  std::list<OutputConstraint> latest_;  // the last used first
  std::set<std::string> logged_;        // notes on schemas
  /// All that compile() has returned and that are not yet gone.
  std::list<
      std::pair<std::weak_ptr<engine::constraints::Constraint>, std::shared_ptr<const std::string>>>
      alive_;
};

}  // namespace troupe::launch::serve::api
