// ContainedProgram: one program and its sandbox, as its parent process (the helper) has it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/sandbox/helper_messages.h"
#include "actors/sandbox/memory_cgroup.h"
#include "actors/sandbox/plan.h"
#include "engine/base/errors/error.h"
#include "engine/base/files/descriptor.h"
#include "engine/base/processes/process_tree.h"

namespace troupe::actors::sandbox {

class ContainedProgram {
 public:
  /// Standard streams of the program.
  struct Streams {
    Descriptor input, output, errors;
  };
  using Time = std::chrono::steady_clock::time_point;

  /// Creates the process, which then sets up its sandbox and runs the program. `number` names its
  /// cgroup. Errc::unsupported (the kernel denies isolation; the message names the setting that
  /// does without it), io.
  static Result<std::unique_ptr<ContainedProgram>> create(SandboxPlan plan, Streams streams,
                                                          unsigned number);
  ContainedProgram(const ContainedProgram&) = delete;
  /// Kills it and its descendants and removes its folder and its cgroup.
  ~ContainedProgram();

  pid_t id() const { return id_; }
  int exited() const { return exited_.get(); }

  /// Readable when the program runs, or its setup failed; -1 afterwards.
  int setup_report() const { return report_.get(); }
  /// Reads the report. Errc::not_found (no such program), unsupported, or timeout.
  Result<> finish_setup();
  bool setup_overdue(Time now) const { return report_.open() && now > setup_deadline_; }

  /// Counts memory, processor time and files, and kills all processes when one is above its limit.
  /// Returns true if they used processor time since the last call.
  bool measure(const std::vector<ProcessEntry>& descendants);
  double processor_seconds() const;

  /// Kills the process and every process that it started, and waits for their end.
  EndReply kill();

 private:
  explicit ContainedProgram(SandboxPlan plan);
  Result<> start(Streams streams, unsigned number);
  Result<> join_cgroup(unsigned number);
  bool in_namespaces() const { return plan_.limits.isolation == Isolation::namespaces; }
  void send_kill() const;
  void exceed(Exceeded what, std::uint64_t used);
  void reap_orphans() const;
  std::uint64_t memory_of(const std::vector<ProcessEntry>& members);

  SandboxPlan plan_;
  pid_t id_ = -1;
  std::string folder_;  ///< removed at the end
  std::optional<MemoryCgroup> cgroup_;
  Descriptor exited_, report_;
  Descriptor go_;  ///< open during the setup, which ends when this process ends
  Time setup_deadline_;
  std::uint64_t inherited_memory_ = 0;  ///< peak of the helper, counted for a child from its fork
  std::uint64_t ticks_ = 0, last_ticks_ = 0;
  bool was_readable_ = false;
  EndReply end_;
};

}  // namespace troupe::actors::sandbox
