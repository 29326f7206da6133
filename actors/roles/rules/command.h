// Command: the rule `command`, rewards from a sandboxed user program in any language. It exchanges
// JSON lines with the program (docs/rewards.md). A thread of its own serves the processes, so that
// the requests of several calls share them.
#pragma once

#include <exception>
#include <functional>
#include <future>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "actors/roles/rules/command_worker.h"
#include "actors/runtime/process_events.h"

namespace troupe::actors::rules {

class Command {
 public:
  /// Completes the options with what is known when the program is about to start, such as `run`.
  using Prepare = std::function<Result<>(CommandOptions&)>;

  /// `where` ("reward[1]") starts its messages. The options must be valid.
  Command(CommandOptions options, std::string where, Prepare prepare = {})
      : given_(options),
        prepare_(std::move(prepare)),
        options_(std::move(options)),
        where_(std::move(where)) {}
  Command(const Command&) = delete;
  /// Ends the processes. No call of score() is in progress.
  ~Command();

  /// Checks that the program and the files that its command names exist. Errors of make_plan().
  Result<> check_files() const;
  /// Starts all workers. Errc::usage, not_found, unsupported or io when the program cannot be
  /// started.
  Result<> start();
  /// Asks a program that reads groups about no completion, which it can answer if it works.
  /// Errc::usage with its reason. After start().
  Result<> try_program();

  /// Returns one result per request, in order; with `group` consecutive requests of one prompt are
  /// sent together. A request without an answer is an error; others are not affected. A request
  /// whose process crashed, was killed or answered malformed is sent once
  /// more, to another process. Throws Failure when the program failed many times without ever
  /// answering. After start() from any thread: the requests of an earlier call are sent before
  /// those of a later one, which need not wait for their answers.
  std::vector<RuleResult> score(std::span<const protocol::RewardRequest> requests);

 private:
  struct Batch;
  /// A process, and the batch of its request.
  struct Seat {
    Worker worker;
    Batch* batch = nullptr;
  };
  Result<sandbox::SandboxPlan> prepared(CommandOptions& options) const;
  Result<> start_workers();
  std::vector<RuleResult> run(Batch& batch);
  void serve(std::promise<Result<>>& started);
  void fail_batches(const std::exception_ptr& why);
  void send_to_idle_workers();
  Batch* batch_for(const Seat& seat);
  void wait();
  void poll_busy_workers();
  void report(const Batch& batch);
  void record(Seat& seat, std::size_t index, Answer answer);
  void finish(Batch& batch);
  [[noreturn]] void give_up(const std::string& last) const;
  void limit_parts(Scored& scored);

  CommandOptions given_;
  Prepare prepare_;
  CommandOptions options_;
  std::string where_;

  std::optional<ProcessEvents> events_;  // since start()
  std::thread thread_;                   // since start(); what follows is used only there
  bool stopping_ = false;
  sandbox::HelperSupervisor helpers_;
  std::optional<sandbox::SandboxPlan> plan_;
  StderrHistory stderr_history_;
  std::vector<Seat> seats_;
  std::vector<Batch*> batches_;  // with unanswered requests, in the order of the calls
  std::set<std::string> part_names_;
  bool has_answered_ = false;
  int failures_ = 0;
  int reports_ = 0;
};

}  // namespace troupe::actors::rules
