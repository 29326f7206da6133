// Rules: rewards that a program can compute from the text, and their weighted sum. A rule that
// cannot judge (the row has no answer, a pattern ran into its limit, a completion is too long) is a
// failure with a reason; it is never a silent 0.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/protocol/reward.h"
#include "engine/base/error.h"
#include "engine/base/json.h"

namespace troupe::actors::rules {

struct Scored {
  double reward = 0;
  std::vector<std::pair<std::string, double>> parts;  ///< what else it counted
};

/// Error of one completion, and what kind of failure it is.
struct RuleError : Error {
  RuleError(Error error, protocol::FailureKind of = protocol::FailureKind::other)
      : Error(std::move(error)), kind(of) {}
  protocol::FailureKind kind;
};
using RuleResult = tl::expected<Scored, RuleError>;

/// Rewards completions: one result for each, in their order. One thread at a time.
struct Rule {
  std::function<std::vector<RuleResult>(std::span<const protocol::RewardRequest>)> judge;
  /// What it needs beside the text (processes) is made ready, or refused with what was tried.
  /// Empty: nothing.
  std::function<Result<>()> start;
};

/// Makes a rule from its options (an object, or null for the defaults). Errc::usage; `where` starts
/// the message.
///   exact_match  1 when the completion is the answer               strip, collapse_spaces,
///   ignore_case, tag gsm8k     1 when the number after "####" is the answer's    flexible (the
///   last number will do), format_score (mark, but wrong) boxed     1 when the last \boxed{} equals
///   the answer        tolerance, format_score (a box, but wrong) format    1 when the completion
///   is <think>..</think> <answer>..</answer>    tags regex     1 when the pattern (Oniguruma's
///   dialect) is found pattern, full (it must match the whole) command   what a program of yours
///   answers (docs/rewards.md)   run, timeout, workers, memory_mb, ... length    0, falling to -1
///   as the completion nears `max`    unit (characters, words), min, max, buffer
/// `tag` (exact_match, gsm8k, boxed): look only inside the last <tag>..</tag> where there is one.
Result<Rule> make_rule(std::string_view name, const Json& options, const std::string& where);

class Rules {
 public:
  /// [{"name": "boxed", "weight": 1.0, "options": {...}, "label": "maths"}, ...]: name is needed;
  /// label, the part's name, is the rule's own unless given; two parts of one label are refused.
  /// Errc::usage.
  static Result<Rules> from_json(const Json& list, const std::string& where);

  /// Starts what rules need beside the text; before the first judge(). Errors of Rule::start.
  Result<> start() const;

  /// For each request: reward = the weighted sum of all parts, absent as soon as one part
  /// failed; the parts that were judged are there all the same. What a rule counts beside its
  /// reward is a part called "label/name".
  std::vector<protocol::RewardResult> judge(
      std::span<const protocol::RewardRequest> requests) const;
  std::vector<std::string> labels() const;

 private:
  struct Part {
    std::string label;
    double weight = 1;
    Rule rule;
  };
  std::vector<Part> parts_;
};

}  // namespace troupe::actors::rules
