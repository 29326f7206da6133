// Worker: one process of a reward program, which handles one request at a time. It is started on
// demand and restarted after a failure.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/roles/rules/rule.h"
#include "actors/runtime/process_events.h"
#include "actors/sandbox/limits.h"
#include "actors/sandbox/process.h"
#include "engine/base/errors/error.h"

namespace troupe::actors::rules {

/// What the processes of a program have written on standard error, to log equal outputs once.
class StderrHistory {
 public:
  /// True for lines that were not logged before.
  bool insert(const std::vector<std::string>& lines);

 private:
  std::set<std::size_t> hashes_;
};

/// A program's standard error: logs the first lines and keeps the last ones for error messages.
class StderrLog {
 public:
  /// `name` precedes each logged line. At most `lines` lines of 1 KiB are ever logged. `history`,
  /// which outlives this, is shared by the processes of a program.
  StderrLog(std::string name, StderrHistory& history, int lines = 50)
      : name_(std::move(name)), history_(&history), left_(lines) {}

  void add(std::string_view text);
  /// Logs the complete lines since the last call, unless a process has written the same ones
  /// before: a program that fails at its start would log one traceback per attempt.
  void flush();
  /// flush() with an incomplete last line, of a process that has ended.
  void end() {
    end_line();
    flush();
  }
  /// Returns the end of the output since begin(), at most about 300 bytes.
  std::string last() const;
  /// Starts the output of a new process.
  void begin() {
    tail_.clear();
    line_.clear();
  }

 private:
  void end_line();

  std::string name_, line_, tail_;
  std::vector<std::string> lines_;  ///< not logged yet
  StderrHistory* history_;
  int left_;
};

/// Advice for a program that has never answered.
inline constexpr const char* expected_of_a_program =
    "expected: it reads JSON lines from standard input and prints {\"id\": ..., \"reward\": ...} "
    "for "
    "each of them, flushed (docs/rewards.md)";

/// Settings of the rule `command`.
struct CommandOptions {
  std::vector<std::string> run;  ///< the program and its arguments
  double timeout = 10;           ///< seconds per response
  double startup = 10;           ///< additional seconds for the first response of a new process
  int workers = 1;               ///< processes that share the requests
  bool fresh = false;            ///< start a new process for each request
  int answer_kb = 64;            ///< maximum KiB of a response
  bool group = false;            ///< a request has all completions of a prompt
  sandbox::Limits limits;
  std::string title;  ///< the program in messages; empty: the words of `run`
  std::string advice = expected_of_a_program;  ///< if it has never answered

  static void each_field(auto& self, auto&& field) {
    field("run", self.run);
    field("timeout", self.timeout);
    field("startup", self.startup);
    field("workers", self.workers);
    field("fresh", self.fresh);
    field("answer_kb", self.answer_kb);
    field("group", self.group);
    sandbox::Limits::each_field(self.limits, field);
  }
  /// Errc::usage with the key and its valid values.
  Result<> validate(const std::string& where) const;
};

using Time = std::chrono::steady_clock::time_point;

/// Delay before a restart after this many consecutive failures: none at first, then 10 ms doubling
/// to 200 ms, so that a program that exits immediately does not occupy the machine.
std::chrono::milliseconds restart_delay(int failures);

using protocol::FailureKind;

/// The error of a completion without a reward; its text begins with the name of `kind`.
tl::unexpected<RuleError> failure(Errc code, FailureKind kind, const std::string& what);

/// The results of a request's completions, or why none of them has one.
using Answer = tl::expected<std::vector<RuleResult>, RuleError>;

class Worker {
 public:
  /// The references outlive the worker.
  Worker(const CommandOptions& options, const sandbox::SandboxPlan& plan,
         sandbox::HelperSupervisor& helpers, StderrHistory& history, std::string name)
      : options_(&options),
        plan_(&plan),
        helpers_(&helpers),
        where_(name),
        stderr_log_(std::move(name), history) {}

  /// Starts a process unless a reusable one runs. Errors of Process::start().
  Result<> start(Time now);

  bool busy() const { return request_.has_value(); }
  /// Earliest time of the next request.
  Time next_start() const { return next_start_; }
  /// Sends a request to an idle worker: one completion, with `group` those of one prompt, or none,
  /// which a program that reads groups answers if it works.
  /// index() identifies it until it completes.
  Result<> ask(std::size_t index, std::span<const protocol::RewardRequest> requests, Time now);
  std::size_t index() const { return request_->index; }

  /// What to wait for while busy, and the deadline of the request.
  std::array<WatchedDescriptor, 4> watched() const;
  Time deadline() const { return request_->deadline; }

  /// Continues after the wait. Returns nullopt while the request is in progress, then its rewards
  /// or its failure. A failure has killed the process and its descendants, unless the program named
  /// it itself. The message starts with the kind: "timeout", "crash", "malformed", "flood",
  /// "memory".
  std::optional<Answer> advance(Time now);

 private:
  struct Request {
    std::size_t index = 0;
    std::uint64_t id = 0;
    std::string line;
    std::size_t count = 0;  ///< completions
    bool group = false;     ///< the line has a list of them
    std::size_t sent = 0;   ///< bytes of the line
    Time deadline;
  };

  Answer failed(Errc code, FailureKind kind, const std::string& what, Time now);
  std::optional<Answer> handle_exit(Time now);
  std::optional<Answer> parse_response(std::size_t line_end, Time now);
  std::optional<Answer> retry(Time now);
  void send();
  void read_output();
  void read_errors();
  bool reusable() const;
  std::optional<std::pair<FailureKind, std::string>> limit_exceeded(
      const sandbox::ExitStatus& exit) const;
  void report_idle_end(const sandbox::ExitStatus& exit);
  double timeout_seconds() const { return options_->timeout + (fresh_ ? options_->startup : 0); }
  std::size_t max_response_bytes() const {
    return static_cast<std::size_t>(options_->answer_kb) * 1024;
  }

  const CommandOptions* options_;
  const sandbox::SandboxPlan* plan_;
  sandbox::HelperSupervisor* helpers_;
  std::string where_;
  int idle_reports_ = 10;
  std::optional<sandbox::Process> process_;
  std::optional<Request> request_;
  std::uint64_t last_id_ = 0;
  bool fresh_ = false;  ///< the process has not answered yet
  int failures_ = 0;    ///< in a row
  Time next_start_{};
  std::string output_;
  bool output_open_ = false, errors_open_ = false, accepts_input_ = false;
  StderrLog stderr_log_;
};

}  // namespace troupe::actors::rules
