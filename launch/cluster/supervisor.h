// Supervisor: starts the processes of a launch, logs their output and watches them. If one exits
// unexpectedly and is not replaced, all are stopped.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "actors/runtime/process_events.h"
#include "engine/base/processes/child_process.h"
#include "launch/cluster/process_log.h"

namespace troupe::launch::cluster {

/// A group that exited unexpectedly, or does not answer.
struct ExitedProcess {
  std::string node;
  pid_t pid = 0;
  bool timed_out = false;  ///< it exited with the code of a timeout
  std::string how;         ///< "was killed by signal 9 (Killed)"
  bool killed = false;     ///< by signal 9, or a process of it was (mpirun exits with 137)
  std::time_t when = 0;
  std::string last_output;
  std::string log;  ///< path of its log file
  std::uint64_t incarnation = 1;
  bool running = false;  ///< it does not answer, and has not exited
  int ends_with = 0;     ///< exit code of a run that it ends; 0: see exit_code_of()
  std::string advice;    ///< why it was not replaced, a sentence; or ""
};
/// "rollout-0 (process 12) was killed by signal 9 (Killed) at 12:30:01, last output: ..."
std::string describe_one(const ExitedProcess& exited);

/// One message for all exits: which process, when, how, its last output, and what to do. `output`
/// is the run's directory.
std::string describe(const std::vector<ExitedProcess>& exits, const std::string& output);
/// The message for exits that changed nothing, because the run was complete.
std::string describe_unneeded(const std::vector<ExitedProcess>& exits);

/// The exit code of launch: that of a timeout if the group that exited first reported one, its
/// ends_with if that is set, otherwise exit_process_died.
int exit_code_of(const std::vector<ExitedProcess>& exits);

struct SupervisorOptions {
  std::string output;  ///< the run's directory; process output is written to its folder logs
  std::function<void()> on_exit;  ///< called once, on the watcher's thread
  /// Called on the watcher's thread for a process that was lost. True if another one was started in
  /// its place (start()). The former one may still run: it is killed after fence_timeout, or at the
  /// end.
  std::function<bool(ExitedProcess&)> replace;
  /// Exits within this time of the first are reported together.
  std::chrono::milliseconds report_window{150};
  /// A lost connection usually means that the process is exiting (mpirun takes a moment). If no
  /// exit follows within this time, the process counts as unresponsive.
  std::chrono::milliseconds disconnect_timeout{1000};
  /// If kill_all() is not called within this time of on_exit, the watcher kills all processes and
  /// exits this one (exit_process_died).
  std::chrono::milliseconds kill_timeout{1000};
  /// Time for a process that was replaced to notice that, once it runs again.
  std::chrono::milliseconds fence_timeout = std::chrono::seconds(60);
  /// Time for a successor to join.
  std::chrono::milliseconds join_timeout = std::chrono::minutes(10);
  FileAccess access = FileAccess::owner_only;  ///< of the logs
};

/// A process of a node.
struct StartedProcess {
  std::string node;
  pid_t pid = 0;
  bool alive = true, replaced = false;
};

class Supervisor {
 public:
  /// Creates the folder of the logs. Throws Failure, as start() does.
  explicit Supervisor(SupervisorOptions options);
  ~Supervisor() { kill_all(); }

  /// Starts a process and writes `line` to its stdin. Call it for all processes from one thread,
  /// which outlives them, and before watch(); for successors inside of SupervisorOptions::replace.
  void start(const std::string& node, const std::vector<std::string>& command,
             std::string_view line, std::uint64_t incarnation = 1);
  /// Starts the watcher's thread.
  void watch();

  /// Reports a lost connection to a group. From any thread, as joined() and processes().
  void disconnected(const std::string& node, const std::string& why, std::uint64_t incarnation = 1);
  /// A successor has joined.
  void joined(const std::string& node, std::uint64_t incarnation);
  /// In the order of their starts, without those that were replaced and have exited.
  std::vector<StartedProcess> processes();
  /// Waits up to `timeout` for an unexpected exit or lost connection, and then until on_exit was
  /// called. Returns false if there was none.
  bool exit_within(std::chrono::milliseconds timeout);

  /// No process is needed any more: exits and lost connections from now on are not unexpected.
  void expect_exits();
  /// Closes the input of all processes and waits up to `timeout` for them to exit. Returns false if
  /// some did not; kill_all() kills them.
  bool shut_down(std::chrono::milliseconds timeout = std::chrono::seconds(3));
  /// Sends SIGTERM, and SIGKILL a second later, until no descendant is left. Returns the unexpected
  /// exits.
  std::vector<ExitedProcess> kill_all();

 private:
  struct Process {
    using Time = std::chrono::steady_clock::time_point;
    std::string node;
    std::uint64_t incarnation;
    ChildProcess child;
    ProcessLog log;
    bool alive = true;
    bool output_closed = false;                    ///< used by the watcher only
    std::optional<std::string> disconnected = {};  ///< why the connection was lost
    std::optional<Time> lost_at = {};              ///< when it counts as unresponsive
    std::optional<Time> replaced_at = {};          ///< a successor has its place since then
    bool is_lost(Time now) const { return alive && !replaced_at && lost_at && now >= *lost_at; }
  };
  void watch_loop();
  void wait_for_events(std::vector<Process*>& printed, std::vector<Process*>& exited);
  std::chrono::steady_clock::time_point next_deadline() const;
  void read_output(Process& process);
  void read_rest();
  void reap(Process& process);
  ExitedProcess exit_of(const Process& process, const std::string& how) const;
  bool replaced(Process& process, ExitedProcess exited);
  bool handle_lost(std::chrono::steady_clock::time_point now);
  void remove_replaced();
  void kill_unresponsive();
  void handle_exits();
  void abort_process();
  void signal_all(int number);
  bool all_exited_within(std::chrono::milliseconds timeout);

  SupervisorOptions options_;
  OutputFolder logs_;
  std::vector<std::unique_ptr<Process>> processes_;
  actors::ProcessEvents events_;
  std::thread watcher_;
  // Guards all members below, what changes of a process, and processes_, which the watcher alone
  // changes after watch().
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ExitedProcess> exits_;
  std::optional<std::chrono::steady_clock::time_point> first_exit_, reported_;
  std::size_t alive_ = 0;
  bool stopping_ = false;
  bool done_ = false;
};

}  // namespace troupe::launch::cluster
