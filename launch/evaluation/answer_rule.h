// AnswerRule: reads and evaluates the answer to an item where filters and metrics do not suffice.
#pragma once

#include "launch/evaluation/scores.h"

namespace troupe::launch::evaluation {

struct RuledAnswer {
  Json filtered;  ///< the answer as it was read, a text
  bool right = false;
  bool no_answer = false;  ///< nothing was found
};

class AnswerRule {
 public:
  virtual ~AnswerRule() = default;
  /// `check`: runs programs. Errors: of a pattern that takes too long, or of a row that the rule
  /// cannot evaluate; the item then counts as wrong.
  virtual Result<RuledAnswer> evaluate(const TaskItem& item, const Json& row,
                                       const ItemAnswer& answer, const CodeCheck& check) const = 0;
};

}  // namespace troupe::launch::evaluation
