// Rule: one reward rule, created by name.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/protocol/reward.h"
#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"

namespace troupe::actors::rules {

struct Scored {
  double reward = 0;
  std::vector<std::pair<std::string, double>> parts;  ///< further named values
  /// False: the rule is left out of this completion's sum (a TRL function that returns None).
  bool applies = true;
};

/// Error of one completion, and what kind of failure it is.
struct RuleError : Error {
  RuleError(Error error, protocol::FailureKind of = protocol::FailureKind::other)
      : Error(std::move(error)), kind(of) {}
  protocol::FailureKind kind;
};
using RuleResult = tl::expected<Scored, RuleError>;

struct RuleInputs {
  bool rows = false;          ///< RewardRequest::row and messages
  bool whole_groups = false;  ///< the completions of a prompt in one call of score()
};

/// Rewards completions: one result for each, in their order. From any thread.
struct Rule {
  std::function<std::vector<RuleResult>(std::span<const protocol::RewardRequest>)> score;
  /// Checks that the files which start() needs exist. Empty when there are none. Errc::not_found.
  std::function<Result<>()> check_files;
  /// Prepares what the rule needs besides the text, such as processes. Empty when nothing is
  /// needed.
  std::function<Result<>()> start;
  /// Checks a row's answer before any completion is scored: Errc::bad_input if no completion of the
  /// row could be. Empty when the rule does not read the answer.
  std::function<Result<>(const Json& answer)> check_answer = {};
  /// Calls of score() that are worth making at a time, on different threads: above 1 where the rule
  /// waits for other processes.
  std::size_t concurrency = 1;
  /// What the requests must have beside texts and answers.
  RuleInputs inputs = {};
};

/// The names of all rules.
std::vector<std::string> rule_names();

/// Creates a rule from its options (an object, or null for the defaults). Errc::usage; `where`
/// starts the message. `tag`, where a rule has it, restricts the rule to the content of the last
/// <tag>..</tag>. Rules and their options:
///   exact_match  1 when the completion equals the answer; strip, collapse_spaces, ignore_case, tag
///   gsm8k        1 when the number after "####" equals the answer's; flexible (accepts the last
///                number), format_score (for a wrong number after the mark), tag
///   boxed        1 when the last \boxed{} equals the answer; tolerance, format_score (for a wrong
///                box), tag
///   gsm8k_published, math_published  1 when the graders of GSM8K and MATH say so
///                (published_math.h)
///   format       1 when the completion is <think>..</think> <answer>..</answer>; tags
///   regex        1 when the pattern (Oniguruma syntax) is found; pattern, full (match the whole
///                text)
///   length       0, falling to -1 as the completion approaches `max`; unit, min, max, buffer
///   command      the reward of a user program (docs/rewards.md); run, timeout, workers, ...
///   python       the reward of a function of TRL, verl or OpenRLHF in a Python file; function,
///                signature, python, arguments, timeout, ...
Result<Rule> make_rule(std::string_view name, const Json& options, const std::string& where);

}  // namespace troupe::actors::rules
