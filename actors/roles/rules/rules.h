// Rules: rewards computed from the text, and their weighted sum. When a rule cannot score a
// completion (the row has no answer, a pattern exceeds its limits, the completion is too long), the
// result is a failure with a reason, never a silent 0.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "actors/roles/rules/rule.h"

namespace troupe::actors::rules {

class Rules {
 public:
  /// Reads [{"name": "boxed", "weight": 1.0, "options": {...}, "label": "maths"}, ...]. `label`
  /// names the part and defaults to `name`; labels must be unique. Errc::usage.
  static Result<Rules> from_json(const Json& list, const std::string& where);

  /// Calls Rule::check_files of every rule, and returns its error.
  Result<> check_files() const;
  /// Calls Rule::start of every rule, and returns its error. Call it before the first score().
  Result<> start() const;

  /// Calls of score() that are worth running at a time, on different threads: 1 without a rule that
  /// waits for processes, at most 64.
  std::size_t concurrency() const;
  /// What any of the rules needs of the requests.
  RuleInputs inputs() const;

  /// Scores each request: the reward is the weighted sum of all parts, and is absent when any part
  /// failed; the parts that succeeded are still reported. Further values of a rule become parts
  /// "label/name".
  std::vector<protocol::RewardResult> score(
      std::span<const protocol::RewardRequest> requests) const;
  std::vector<std::string> labels() const;
  /// Errc::bad_input if a rule reads the row's answer and cannot use this one; the message names
  /// the rule and the columns that hold an answer.
  Result<> check_answer(const Json& answer) const;

 private:
  struct Part {
    std::string label;
    double weight = 1;
    Rule rule;
  };
  std::vector<Part> parts_;
};

}  // namespace troupe::actors::rules
