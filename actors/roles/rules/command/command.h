// Command: the rule `command`, rewards from a sandboxed user program in any language. It exchanges
// JSON lines with the program (docs/rewards.md).
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/roles/rules/command/worker.h"
#include "actors/runtime/process_events.h"

namespace troupe::actors::rules {

class Command {
 public:
  /// `where` ("reward[1]") starts its messages. The options must be valid.
  Command(CommandOptions options, std::string where)
      : options_(std::move(options)), where_(std::move(where)) {}
  Command(const Command&) = delete;

  /// Checks that the program and the files that its command names exist. Errors of make_plan().
  Result<> check_files() const;
  /// Starts all workers. Errc::usage, not_found, unsupported or io when the program cannot be
  /// started.
  Result<> start();

  /// Returns one result per request, in order. A request without an answer is an error; others are
  /// not affected. Throws Failure when the program failed many times without ever answering.
  std::vector<RuleResult> score(std::span<const protocol::RewardRequest> requests);

 private:
  struct Batch;
  void send_to_idle_workers(Batch& batch);
  void wait(const Batch& batch);
  void poll_busy_workers(Batch& batch);
  void report(const std::vector<RuleResult>& results);
  void record(Batch& batch, std::size_t index, RuleResult result);
  void limit_parts(Scored& scored);

  CommandOptions options_;
  std::string where_;
  std::optional<sandbox::Plan> plan_;
  StderrHistory stderr_history_;
  std::vector<Worker> workers_;
  std::optional<ProcessEvents> events_;  // since start()
  std::set<std::string> part_names_;
  bool has_answered_ = false;
  int failures_ = 0;
  int reports_ = 0;
};

}  // namespace troupe::actors::rules
