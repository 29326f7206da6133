// The rule `command`: rewards from a program of the user, in any language, contained and spoken to
// over lines of JSON (docs/rewards.md).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/roles/rules/command/worker.h"

namespace troupe::actors::rules {

class Command {
 public:
  /// `where` ("reward[1]") starts its messages. The options were validated.
  Command(CommandOptions options, std::string where)
      : options_(std::move(options)), where_(std::move(where)) {}
  Command(const Command&) = delete;

  /// Starts all workers. Errc::usage, not_found, unsupported, io: the program cannot be started
  /// here, and what was tried.
  Result<> start();

  /// One result for each request, in their order. A request that gets no answer is an error
  /// of its own; the others are not touched by it. Throws Failure when the program has failed many
  /// times and never given one answer: nothing will come of such a run.
  std::vector<RuleResult> judge(std::span<const protocol::RewardRequest> requests);

 private:
  struct Round;
  void ask_idle(Round& round);
  void wait(const Round& round) const;
  void hear_busy(Round& round);
  void report(const std::vector<RuleResult>& results);
  void settle(Round& round, std::size_t index, RuleResult result);

  CommandOptions options_;
  std::string where_;
  std::optional<sandbox::Plan> plan_;
  std::vector<Worker> workers_;
  bool has_answered_ = false;
  int failures_ = 0;
  int reports_ = 0;
};

}  // namespace troupe::actors::rules
