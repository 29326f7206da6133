#include "actors/sandbox/contained_program.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "actors/sandbox/census.h"
#include "actors/sandbox/child_setup.h"
#include "actors/sandbox/landlock.h"
#include "actors/sandbox/temp_folder.h"
#include "engine/base/files/file.h"
#include "engine/base/processes/pipe.h"
#include "engine/base/text/text.h"

namespace troupe::actors::sandbox {
namespace {

// Maximum time for killed processes to end; longer means that one hangs in a driver.
// Both are shorter than helper_timeout, within which the helper answers.
constexpr std::chrono::milliseconds kill_timeout{4000};
constexpr std::chrono::seconds setup_timeout{8};

std::vector<char*> argv_of(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const auto& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

bool write_text(const std::string& path, const std::string& text) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file.open() &&
         ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// A child of root sets its sandbox up as root and then becomes nobody. For another user, nobody
// inside is that user outside.
bool map_users(pid_t child) {
  const std::string at = cat("/proc/", child, "/");
  if (::getuid() == 0) {
    const std::string both = cat("0 0 1\n", nobody, " ", nobody, " 1\n");
    return write_text(at + "uid_map", both) && write_text(at + "gid_map", both);
  }
  return write_text(at + "setgroups", "deny") &&
         write_text(at + "uid_map", cat(nobody, " ", ::geteuid(), " 1\n")) &&
         write_text(at + "gid_map", cat(nobody, " ", ::getegid(), " 1\n"));
}

std::uint64_t clone_flags(const Limits& limits) {
  std::uint64_t flags = SIGCHLD | CLONE_PIDFD;
  if (limits.isolation == Isolation::limits) return flags;
  flags |=
      CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
  return limits.network ? flags : flags | CLONE_NEWNET;
}

// Peak memory of this process, which is also the initial peak of its children.
std::uint64_t own_peak_memory() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
}

constexpr const char* isolation_help =
    "Reward programs run in user, process, mount and network namespaces, which the system must "
    "allow "
    "this user "
    "(in a container: --security-opt seccomp=unconfined; on Debian: sysctl "
    "kernel.unprivileged_userns_clone=1), or say "
    "\"isolation: limits\", which lets the program see this host's files";

Error denied(const SandboxPlan& plan, const std::string& what, int error) {
  const bool boxed = plan.limits.isolation == Isolation::namespaces;
  return {Errc::unsupported,
          cat("cannot contain ", quote(plan.program, 400), ": ", what, ": ", std::strerror(error),
              boxed ? ". " : "", boxed ? isolation_help : "")};
}

Error describe(const SandboxPlan& plan, const SetupError& error) {
  const std::string step(names_of(SetupStep{})[static_cast<std::size_t>(error.step)]);
  if (error.step == SetupStep::program)
    return {Errc::not_found,
            cat("cannot run ", quote(plan.program, 400), ": ", std::strerror(error.error),
                " (its files must belong to the system, be named in the command, or be listed "
                "under \"read\"",
                ::getuid() == 0 ? "; it runs as nobody)" : ")")};
  const std::string path =
      error.which >= 0
          ? cat(" (", plan.mounts[static_cast<std::size_t>(error.which)].to.substr(4), ")")
          : "";
  return denied(plan, cat("it could not ", step, path), error.error);
}

}  // namespace

ContainedProgram::ContainedProgram(SandboxPlan plan)
    : plan_(std::move(plan)), setup_deadline_(std::chrono::steady_clock::now() + setup_timeout) {
}

ContainedProgram::~ContainedProgram() {
  kill();
  if (!folder_.empty()) remove_temp_folder(folder_);
}

Result<std::unique_ptr<ContainedProgram>> ContainedProgram::create(SandboxPlan plan,
                                                                   Streams streams,
                                                                   unsigned number) {
  std::unique_ptr<ContainedProgram> out(new ContainedProgram(std::move(plan)));
  RETURN_IF_ERROR(out->start(std::move(streams), number));
  return out;
}

Result<> ContainedProgram::start(Streams streams, unsigned number) {
  if (!in_namespaces()) {
    // Without Landlock the program could write to the memory of this process.
    if (landlock_version() == 0) ::prctl(PR_SET_DUMPABLE, 0);
    // The kernel counts all tasks of the user on this host.
    plan_.processes = plan_.limits.processes + tasks_of(::getuid() == 0 ? nobody : ::getuid());
    auto folder = make_temp_folder(plan_.temporary, nobody);
    RETURN_IF_ERROR(folder);
    folder_ = std::move(*folder);
    for (std::string& variable : plan_.environment)
      for (const char* name : {"HOME=", "TMPDIR="})
        if (variable.starts_with(name)) variable = cat(name, folder_);
  }
  auto go = new_pipe(), report = new_pipe();
  RETURN_IF_ERROR(go);
  RETURN_IF_ERROR(report);
  const auto run = argv_of(plan_.run), environment = argv_of(plan_.environment);
  const ChildPipes pipes{streams.input.get(), streams.output.get(), streams.errors.get(),
                         go->read.get(),      report->write.get(),  go->write.get()};
  int pidfd = -1;
  inherited_memory_ = own_peak_memory();
  const long child =
      ::syscall(SYS_clone, clone_flags(plan_.limits), nullptr, &pidfd, nullptr, nullptr);
  if (child == 0) run_child(plan_, folder_.c_str(), pipes, run.data(), environment.data());
  if (child < 0) return fail(denied(plan_, "cannot create a process", errno));
  id_ = static_cast<pid_t>(child);
  exited_ = Descriptor(pidfd);
  report_ = std::move(report->read);
  go_ = std::move(go->write);
  if (in_namespaces() && !map_users(id_)) return fail(denied(plan_, "cannot map its users", errno));
  RETURN_IF_ERROR(join_cgroup(number));
  if (::write(go_.get(), "g", 1) != 1) return fail(denied(plan_, "it ended immediately", errno));
  return {};
}

// Without a delegated cgroup, the census alone limits memory.
Result<> ContainedProgram::join_cgroup(unsigned number) {
  const std::string& named = plan_.limits.memory_cgroup;
  std::optional<CgroupParent> parent;
  if (named.empty()) {
    parent = delegated_cgroup(read_proc_file("/proc/self/mountinfo"),
                              read_proc_file("/proc/self/cgroup"));
  } else {
    auto found = cgroup_parent_at(named);
    RETURN_IF_ERROR(found);
    parent = std::move(*found);
  }
  if (!parent) return {};
  auto group = MemoryCgroup::create(*parent, cat("troupe-reward-", ::getpid(), "-", number),
                                    static_cast<std::uint64_t>(plan_.limits.memory_mb) << 20);
  if (!group) return named.empty() ? Result<>() : Result<>(fail(group.error()));
  if (auto added = group->add(id_); !added) return named.empty() ? Result<>() : added;
  cgroup_.emplace(std::move(*group));
  return {};
}

Result<> ContainedProgram::finish_setup() {
  SetupError error;
  const bool late = setup_overdue(std::chrono::steady_clock::now());
  const ssize_t count = late ? 0 : ::read(report_.get(), &error, sizeof error);
  report_.close();
  go_.close();
  if (late)
    return fail(Errc::timeout, cat("cannot run ", quote(plan_.program, 400),
                                   ": it did not start within ", setup_timeout.count(), " s"));
  if (count == sizeof error) return fail(describe(plan_, error));
  return {};  // exec closed the other end of the pipe
}

void ContainedProgram::send_kill() const {
  // Before the leader is waited for: until then its id cannot be reused.
  if (id_ > 0) ::kill(in_namespaces() ? id_ : -id_, SIGKILL);
  if (id_ > 0) ::kill(id_, SIGKILL);  // it may not lead a group yet
}

void ContainedProgram::exceed(Exceeded what, std::uint64_t used) {
  if (end_.exceeded == Exceeded::nothing) {
    end_.exceeded = what;
    end_.used = used;
  }
  send_kill();
}

// Processes of the group whose parents have ended are children of this process, which is their
// subreaper. The leader is waited for in kill().
void ContainedProgram::reap_orphans() const {
  siginfo_t ended{};
  while (::waitid(P_PGID, static_cast<id_t>(id_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         ended.si_pid > 0 && ended.si_pid != id_) {
    ::waitpid(ended.si_pid, nullptr, WNOHANG);
    ended.si_pid = 0;
  }
}

std::uint64_t ContainedProgram::memory_of(const std::vector<ProcessEntry>& members) {
  const std::uint64_t file_bytes = static_cast<std::uint64_t>(plan_.limits.file_mb) << 20;
  Census census(in_namespaces() ? 0 : file_bytes);
  for (const ProcessEntry& entry : members)
    if (!entry.ended) census.add(entry.id);
  if (census.unreadable() && was_readable_) exceed(Exceeded::unreadable, 0);
  was_readable_ = was_readable_ || !census.unreadable();
  if (!in_namespaces()) return census.memory();
  // Its file system, which is in memory.
  struct statfs about {};
  const bool known = ::statfs(cat("/proc/", id_, "/root", "/tmp").c_str(), &about) == 0;
  return census.memory() +
         (known ? (about.f_blocks - about.f_bfree) * static_cast<std::uint64_t>(about.f_bsize) : 0);
}

bool ContainedProgram::measure(const std::vector<ProcessEntry>& descendants) {
  if (id_ < 0 || report_.open()) return true;
  if (!in_namespaces()) reap_orphans();
  const auto members = members_of(id_, descendants);
  std::uint64_t ticks = 0;
  for (const ProcessEntry& entry : members) ticks += entry.ticks;
  const bool active = ticks != last_ticks_;
  // Time of processes that nobody waited for is in no later sum.
  ticks_ += ticks > last_ticks_ ? ticks - last_ticks_ : 0;
  last_ticks_ = ticks;
  const Limits& limits = plan_.limits;
  const std::uint64_t memory = memory_of(members);
  if (memory >> 20 > static_cast<std::uint64_t>(limits.memory_mb)) exceed(Exceeded::memory, memory);
  if (processor_seconds() > limits.cpu_seconds)
    exceed(Exceeded::processor, static_cast<std::uint64_t>(processor_seconds()));
  if (!folder_.empty()) {
    const std::uint64_t bytes = bytes_in(folder_);
    if (bytes >> 20 > static_cast<std::uint64_t>(limits.file_mb)) exceed(Exceeded::files, bytes);
  }
  return active;
}

double ContainedProgram::processor_seconds() const {
  return static_cast<double>(ticks_) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

EndReply ContainedProgram::kill() {
  if (id_ <= 0) return end_;
  send_kill();
  if (wait_readable(exited_.get(), kill_timeout)) {
    rusage used{};
    ::wait4(id_, &end_.status, 0, &used);
    const std::uint64_t counted = static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
    end_.peak_memory = counted > inherited_memory_ ? counted : 0;
    // In a namespace, the first process ends after the others.
    for (int ms = 0; !in_namespaces() && ms < kill_timeout.count() && ::kill(-id_, SIGKILL) == 0;
         ++ms) {
      while (::waitpid(-id_, nullptr, WNOHANG) > 0) continue;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  } else {
    end_.status = SIGKILL;
  }
  if (cgroup_ && cgroup_->exceeded() && end_.exceeded == Exceeded::nothing) {
    end_.exceeded = Exceeded::memory;
    end_.used = static_cast<std::uint64_t>(plan_.limits.memory_mb) << 20;
  }
  id_ = -1;
  return end_;
}

}  // namespace troupe::actors::sandbox
