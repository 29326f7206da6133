// Worker: one process of a reward program, one question at a time. It is started when it is needed
// and replaced when it misbehaved.
#pragma once

#include <poll.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "actors/roles/rules/command/command_options.h"
#include "actors/roles/rules/command/stderr_log.h"
#include "actors/roles/rules/rules.h"
#include "actors/sandbox/process.h"
#include "actors/sandbox/process_tree.h"

namespace troupe::actors::rules {

using Time = std::chrono::steady_clock::time_point;

/// How long to wait before the next start after so many failures in a row: nothing at first, then
/// 10 ms doubling to 200 ms, so that a program that ends at once does not keep the machine busy
/// with starting it.
std::chrono::milliseconds pause_after(int failures);

using protocol::FailureKind;

/// The error of a completion without a reward; its text begins with the name of `kind`.
tl::unexpected<RuleError> failure(Errc code, FailureKind kind, const std::string& what);

class Worker {
 public:
  Worker(const CommandOptions& options, const sandbox::Plan& plan, std::string name)
      : options_(&options), plan_(&plan), words_(std::move(name)) {}

  /// Errc::not_found, unsupported, io: Process::start's. A process that runs and is fit for another
  /// question is kept.
  Result<> start(Time now);

  bool busy() const { return question_.has_value(); }
  /// Not to be asked before.
  Time rested() const { return rested_; }
  /// A question for an idle worker. `index` is given back with the answer.
  Result<> ask(std::size_t index, const protocol::RewardRequest& request, Time now);
  std::size_t index() const { return question_->index; }

  /// What poll() should look at while it is busy, and until when at the latest.
  std::array<pollfd, 4> watched() const;
  Time deadline() const { return question_->deadline; }

  /// Moves on after poll(): nothing, the answer, or why there is none (the process is then gone,
  /// with all that it started). The text begins with the kind: "timeout", "crash", "malformed",
  /// "flood", "memory".
  std::optional<RuleResult> advance(Time now);
  /// The failure "memory" when it holds too much, with all that it started.
  std::optional<RuleResult> weigh(const sandbox::Census& census, Time now);

 private:
  struct Question {
    std::size_t index = 0;
    std::uint64_t id = 0;
    std::string line;
    std::size_t sent = 0;  ///< bytes of the line
    Time deadline;
  };

  RuleResult failed(Errc code, FailureKind kind, const std::string& what, Time now);
  std::optional<RuleResult> ended(Time now);
  std::optional<RuleResult> look_at(std::size_t line_end, Time now);
  std::optional<RuleResult> again(Time now);
  void send();
  void read_output();
  void read_errors();
  bool fit_for_more() const;
  double patience() const {
    return options_->timeout + (fresh_ ? options_->startup : 0);
  }  ///< seconds
  std::size_t longest_answer() const {
    return static_cast<std::size_t>(options_->answer_kb) * 1024;
  }

  const CommandOptions* options_;
  const sandbox::Plan* plan_;
  std::optional<sandbox::Process> process_;
  std::optional<Question> question_;
  std::uint64_t last_id_ = 0;
  bool fresh_ = false;  ///< the process has not answered yet
  int failures_ = 0;    ///< in a row
  Time rested_{};
  std::string output_;
  bool output_open_ = false, errors_open_ = false, listens_ = false;
  Words words_;
};

}  // namespace troupe::actors::rules
