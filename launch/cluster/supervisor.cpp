#include "launch/cluster/supervisor.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "engine/base/log/log.h"
#include "engine/base/text/terminal_text.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/thread_with_blocked_signals.h"
#include "launch/run/exit_code.h"

namespace troupe::launch::cluster {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::string clock_of(std::time_t when) {
  std::tm local{};
  std::array<char, 16> text{};
  ::localtime_r(&when, &local);
  std::strftime(text.data(), text.size(), "%H:%M:%S", &local);
  return text.data();
}

std::string describe_each(const std::vector<ExitedProcess>& exits) {
  std::vector<std::string> each;
  for (const ExitedProcess& exited : exits) each.push_back(describe_one(exited));
  return join(each, "; and ");
}

constexpr std::string_view memory_advice =
    " If nobody sent signal 9, the kernel did because the memory of the machine or of a control "
    "group was exhausted (dmesg says so; docs/memory.md).";

}  // namespace

std::string describe_one(const ExitedProcess& exited) {
  const std::string output = exited.last_output.empty()
                                 ? "without output"
                                 : cat("last output: ", quote(exited.last_output, 600));
  return cat(exited.node, " (process ", exited.pid, ") ", exited.how, " at ", clock_of(exited.when),
             ", ", output, " (log: ", exited.log, ")");
}

std::string describe(const std::vector<ExitedProcess>& exits, const std::string& output) {
  std::error_code none;
  const auto latest = std::filesystem::read_symlink(output + "/latest", none);
  const std::string next = none
                               ? "There is no checkpoint yet: the same command starts the run again"
                               : cat("Run the same command again to resume from ", latest.string());
  const bool killed = std::ranges::any_of(exits, &ExitedProcess::killed);
  const std::string advice = exits.empty() ? "" : exits.front().advice;
  return cat(describe_each(exits), ".", killed ? memory_advice : "", advice.empty() ? "" : " ",
             advice, " All processes of the run were stopped. ", next);
}

std::string describe_unneeded(const std::vector<ExitedProcess>& exits) {
  return cat(describe_each(exits), ". The run was complete without it");
}

int exit_code_of(const std::vector<ExitedProcess>& exits) {
  if (!exits.empty() && exits.front().timed_out) return run::exit_code(Errc::timeout);
  return !exits.empty() && exits.front().ends_with != 0 ? exits.front().ends_with
                                                        : run::exit_process_died;
}

Supervisor::Supervisor(SupervisorOptions options)
    : options_(std::move(options)),
      logs_(value_or_throw(
          value_or_throw(OutputFolder::open(options_.output, options_.access)).folder("logs"))) {
  adopt_orphans();
}

void Supervisor::start(const std::string& node, const std::vector<std::string>& command,
                       std::string_view line, std::uint64_t incarnation) {
  ProcessLog log(node, logs_);
  auto child = value_or_throw(ChildProcess::start(command));
  auto process = std::make_unique<Process>(Process{
      .node = node, .incarnation = incarnation, .child = std::move(child), .log = std::move(log)});
  if (incarnation > 1) process->lost_at = steady_clock::now() + options_.join_timeout;
  // If the process has already exited, the watcher reports that.
  if (auto written = process->child.write_input(line);
      !written && written.error().code != Errc::closed)
    throw Failure(written.error());
  const std::lock_guard lock(mutex_);  // disconnected() may be called for earlier ones
  processes_.push_back(std::move(process));
  ++alive_;
}

void Supervisor::watch() {
  watcher_ = thread_with_blocked_signals("troupe/watcher", [this] { watch_loop(); });
}

void Supervisor::disconnected(const std::string& node, const std::string& why,
                              std::uint64_t incarnation) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    for (auto& process : processes_) {
      if (process->node != node || process->incarnation != incarnation || !process->alive) continue;
      process->disconnected = why;
      process->lost_at = steady_clock::now() + options_.disconnect_timeout;
    }
  }
  changed_.notify_all();
  events_.wake();
}

void Supervisor::joined(const std::string& node, std::uint64_t incarnation) {
  const std::lock_guard lock(mutex_);
  for (auto& process : processes_)
    if (process->node == node && process->incarnation == incarnation && !process->disconnected)
      process->lost_at.reset();
}

std::vector<StartedProcess> Supervisor::processes() {
  const std::lock_guard lock(mutex_);
  std::vector<StartedProcess> out;
  for (const auto& process : processes_)
    if (process->alive || !process->replaced_at)
      out.push_back(
          {process->node, process->child.pid(), process->alive, process->replaced_at.has_value()});
  return out;
}

bool Supervisor::exit_within(milliseconds timeout) {
  std::unique_lock lock(mutex_);
  const auto something = [this] {
    return first_exit_ || std::ranges::any_of(processes_, [](const auto& process) {
             return process->alive && !process->replaced_at && process->disconnected;
           });
  };
  if (!changed_.wait_for(lock, timeout, something)) return false;
  return changed_.wait_for(
      lock, options_.disconnect_timeout + options_.report_window + options_.kill_timeout,
      [this] { return reported_.has_value(); });
}

void Supervisor::watch_loop() {
  for (;;) {
    std::vector<Process*> printed, exited;
    wait_for_events(printed, exited);
    for (Process* process : printed) read_output(*process);
    for (Process* process : exited) {
      read_output(*process);
      reap(*process);
    }
    handle_exits();
    remove_replaced();
    const std::lock_guard lock(mutex_);
    if (done_) break;
  }
  read_rest();
}

void Supervisor::read_rest() {
  for (auto& process : processes_) {
    read_output(*process);
    process->log.finish();
  }
}

void Supervisor::wait_for_events(std::vector<Process*>& printed, std::vector<Process*>& exited) {
  std::vector<actors::WatchedDescriptor> watched;
  auto until = steady_clock::time_point::max();
  {
    const std::lock_guard lock(mutex_);
    until = next_deadline();
    for (auto& process : processes_) {
      watched.push_back({process->output_closed ? -1 : process->child.output_fd()});
      watched.push_back({process->alive ? process->child.exit_fd() : -1});
    }
  }
  const std::vector<bool> ready = events_.wait(watched, until);
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (ready[2 * i]) printed.push_back(processes_[i].get());
    if (ready[2 * i + 1]) exited.push_back(processes_[i].get());
  }
}

// When handle_exits() has something to do.
steady_clock::time_point Supervisor::next_deadline() const {
  if (stopping_) return steady_clock::time_point::max();
  if (reported_) return *reported_ + options_.kill_timeout;
  auto next = steady_clock::time_point::max();
  if (first_exit_) next = *first_exit_ + options_.report_window;
  for (const auto& process : processes_) {
    if (!process->alive) continue;
    if (process->replaced_at)
      next = std::min(next, *process->replaced_at + options_.fence_timeout);
    else if (process->lost_at)
      next = std::min(next, *process->lost_at);
  }
  return next;
}

void Supervisor::read_output(Process& process) {
  constexpr std::size_t read_size = 65536;
  constexpr int max_reads = 16;  // then the others: a process may print without end
  std::array<char, read_size> buffer;
  for (int i = 0; i < max_reads && !process.output_closed; ++i) {
    const ssize_t count = ::read(process.child.output_fd(), buffer.data(), buffer.size());
    if (count > 0)
      process.log.add({buffer.data(), static_cast<std::size_t>(count)});
    else if (count == 0)
      process.output_closed = true;
    else if (errno != EINTR)
      return;
  }
}

ExitedProcess Supervisor::exit_of(const Process& process, const std::string& how) const {
  return {.node = process.node,
          .pid = process.child.pid(),
          .how = how,
          .when = std::time(nullptr),
          .last_output = process.log.last_output(),
          .log = process.log.path(),
          .incarnation = process.incarnation};
}

void Supervisor::reap(Process& process) {
  std::optional<ExitedProcess> exited;
  {
    // Signals are sent under the same lock: never to a process id that was reused.
    const std::lock_guard lock(mutex_);
    const auto status = process.child.reap();
    if (!status) return;
    process.alive = false;
    --alive_;
    const bool known = std::ranges::any_of(
        exits_, [&](const ExitedProcess& e) { return e.pid == process.child.pid(); });
    if (process.replaced_at && !stopping_)
      log_info(cat("process ", process.child.pid(), " of ", process.node, ", which was replaced, ",
                   describe_exit(*status)));
    if (!stopping_ && !known && !process.replaced_at) {
      exited = exit_of(process, describe_exit(*status));
      exited->timed_out =
          WIFEXITED(*status) && WEXITSTATUS(*status) == run::exit_code(Errc::timeout);
      exited->killed = was_killed(*status);
    }
  }
  if (exited) replaced(process, std::move(*exited));
  changed_.notify_all();
}

// Without the lock, because it starts a process. An exit that is not replaced is noted.
bool Supervisor::replaced(Process& process, ExitedProcess exited) {
  bool done = false;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return true;
  }
  if (options_.replace) done = options_.replace(exited);
  const std::lock_guard lock(mutex_);
  if (done) {
    process.replaced_at = steady_clock::now();
  } else if (!stopping_ && !exited.running) {
    exits_.push_back(std::move(exited));
    if (!first_exit_) first_exit_ = steady_clock::now();
  }
  return done;
}

// Groups that lost their connection, or did not join, and have not exited. False if one of them is
// not replaced. Ends those that were replaced and had their time to notice it.
bool Supervisor::handle_lost(steady_clock::time_point now) {
  bool good = true;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    Process& process = *processes_[i];  // more may be added, but none moves
    std::optional<ExitedProcess> lost;
    {
      const std::lock_guard lock(mutex_);
      if (process.alive && process.replaced_at &&
          now - *process.replaced_at >= options_.fence_timeout)
        process.child.signal(SIGKILL);
      if (!process.is_lost(now)) continue;
      if (!process.disconnected)
        process.disconnected = cat(
            "did not join within ",
            std::chrono::duration_cast<std::chrono::seconds>(options_.join_timeout).count(), " s");
      lost = exit_of(process, *process.disconnected);
    }
    lost->running = true;
    if (!replaced(process, std::move(*lost))) good = false;
  }
  return good;
}

// Those that have exited: a run may replace many.
void Supervisor::remove_replaced() {
  for (auto& process : processes_)
    if (!process->alive && process->replaced_at && process->output_closed) process->log.finish();
  const std::lock_guard lock(mutex_);
  std::erase_if(processes_, [](const auto& process) {
    return !process->alive && process->replaced_at && process->output_closed;
  });
}

// Kills groups that lost their connection but have not exited; the watcher then sees them exit.
void Supervisor::kill_unresponsive() {
  for (auto& process : processes_) {
    if (!process->alive || process->replaced_at || !process->disconnected) continue;
    exits_.push_back(exit_of(*process, *process->disconnected));
    process->child.signal(SIGKILL);
  }
}

void Supervisor::handle_exits() {
  const auto now = steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    if (reported_ && now - *reported_ < options_.kill_timeout) return;
  }
  if (reported_) return abort_process();
  const bool lost = !handle_lost(now);
  {
    const std::lock_guard lock(mutex_);
    if (!lost && !(first_exit_ && now - *first_exit_ >= options_.report_window)) return;
    kill_unresponsive();
    reported_ = now;
    changed_.notify_all();
  }
  options_.on_exit();
}

// The main thread is busy with something long: reports the exits, kills all processes and exits.
void Supervisor::abort_process() {
  kill_descendants();
  read_rest();
  const std::string why = describe(exits_, options_.output);
  log_to_file(LogLevel::error, why);
  const std::string text = cat("troupe: ", for_terminal(why), "\n");
  std::fputs(text.c_str(), stderr);
  ::_exit(exit_code_of(exits_));
}

void Supervisor::signal_all(int number) {
  const std::lock_guard lock(mutex_);
  for (auto& process : processes_)
    if (process->alive) process->child.signal(number);
}

bool Supervisor::all_exited_within(milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [this] { return alive_ == 0; });
}

void Supervisor::expect_exits() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
}

bool Supervisor::shut_down(milliseconds timeout) {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (auto& process : processes_) {
      process->child.close_input();
      if (process->alive && process->replaced_at) process->child.signal(SIGKILL);
    }
  }
  return all_exited_within(timeout);
}

std::vector<ExitedProcess> Supervisor::kill_all() {
  if (done_) return {};
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  signal_all(SIGTERM);
  if (watcher_.joinable() && !all_exited_within(std::chrono::seconds(1))) {
    signal_all(SIGKILL);
    all_exited_within(std::chrono::seconds(1));
  }
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  events_.wake();
  if (watcher_.joinable()) watcher_.join();
  kill_descendants();
  return std::move(exits_);
}

}  // namespace troupe::launch::cluster
