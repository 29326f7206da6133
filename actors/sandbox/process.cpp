#include "actors/sandbox/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "actors/sandbox/child_setup.h"
#include "actors/sandbox/process_tree.h"
#include "engine/base/log.h"
#include "engine/base/text.h"

namespace troupe::actors::sandbox {
namespace {

// Maximum time for killed processes to end; longer means that one hangs in a driver.
constexpr int kill_timeout_ms = 10'000;

// Duplicates a descriptor to a number above 2, so that the child can redirect its standard streams.
Result<Handle> raised(int fd) {
  const Handle first(fd);
  const int high = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (high < 0) return fail(Errc::io, cat("cannot keep a pipe: ", std::strerror(errno)));
  return Handle(high);
}

struct Pipe {
  Handle read, write;
};

Result<Pipe> new_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return fail(Errc::io, cat("cannot make a pipe: ", std::strerror(errno)));
  auto read = raised(ends[0]), write = raised(ends[1]);
  RETURN_IF_ERROR(read);
  RETURN_IF_ERROR(write);
  return Pipe{std::move(*read), std::move(*write)};
}

void make_nonblocking(const Handle& handle) {
  ::fcntl(handle.get(), F_SETFL, ::fcntl(handle.get(), F_GETFL) | O_NONBLOCK);
}

std::vector<char*> argv_of(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const auto& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

bool write_file(const std::string& path, const std::string& text) {
  const Handle file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file.get() >= 0 &&
         ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// A child of root sets its sandbox up as root and then becomes nobody. For another user, nobody
// inside is that user outside.
bool map_users(pid_t child) {
  const std::string at = cat("/proc/", child, "/");
  if (::getuid() == 0) {
    const std::string both = cat("0 0 1\n", nobody, " ", nobody, " 1\n");
    return write_file(at + "uid_map", both) && write_file(at + "gid_map", both);
  }
  return write_file(at + "setgroups", "deny") &&
         write_file(at + "uid_map", cat(nobody, " ", ::geteuid(), " 1\n")) &&
         write_file(at + "gid_map", cat(nobody, " ", ::getegid(), " 1\n"));
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

// fork() with namespaces. Signals are blocked, so that the child does not run the parent's
// handlers.
pid_t clone_child(const Limits& limits, int& pidfd) {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const long child = ::syscall(SYS_clone, clone_flags(limits), nullptr, &pidfd, nullptr, nullptr);
  const int why = errno;
  if (child != 0) ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = why;
  return static_cast<pid_t>(child);
}

// Waits for the other processes of a killed group. In a namespace, the first process ends after
// them.
void wait_for_group(pid_t group) {
  for (int ms = 0;
       ms < kill_timeout_ms && ::kill(-group, 0) == 0 && ProcessSnapshot().has_process_group(group);
       ++ms)
    ::poll(nullptr, 0, 1);
}

constexpr const char* isolation_help =
    "Reward programs run in user, process, mount and network namespaces, which the system must "
    "allow "
    "this user "
    "(in a container: --security-opt seccomp=unconfined; on Debian: sysctl "
    "kernel.unprivileged_userns_clone=1), or say "
    "\"isolation: limits\", which lets the program see this host's files";

Error denied(const Plan& plan, const std::string& what, int error) {
  const bool boxed = plan.limits.isolation == Isolation::namespaces;
  return {Errc::unsupported,
          cat("cannot contain ", quote(plan.program, 400), ": ", what, ": ", std::strerror(error),
              boxed ? ". " : "", boxed ? isolation_help : "")};
}

Error describe(const Plan& plan, const SetupError& error) {
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

void Handle::close() {
  if (const int fd = std::exchange(fd_, -1); fd >= 0) ::close(fd);
}

std::string ExitStatus::text() const {
  if (WIFSIGNALED(status))
    return cat("was killed by signal ", WTERMSIG(status), " (", ::strsignal(WTERMSIG(status)), ")");
  return cat("ended with exit code ", WEXITSTATUS(status));
}

Result<Process> Process::start(const Plan& plan) {
  auto input = new_pipe(), output = new_pipe(), errors = new_pipe(), go = new_pipe(),
       report = new_pipe();
  for (const auto* pipe : {&input, &output, &errors, &go, &report}) RETURN_IF_ERROR(*pipe);
  Process process;
  process.is_namespace_ = plan.limits.isolation == Isolation::namespaces;
  if (auto folder = process.is_namespace_ ? Result<std::string>("") : make_temp_folder(nobody);
      folder)
    process.folder_ = std::move(*folder);
  else
    return fail(folder);
  const auto run = argv_of(plan.run), environment = argv_of(plan.environment);
  const ChildPipes pipes{input->read.get(), output->write.get(), errors->write.get(),
                         go->read.get(),    report->write.get(), go->write.get()};
  int pidfd = -1;
  process.inherited_memory_ = own_peak_memory();
  const pid_t child = clone_child(plan.limits, pidfd);
  if (child == 0) run_child(plan, process.folder_.c_str(), pipes, run.data(), environment.data());
  if (child < 0) return fail(denied(plan, "cannot create a process", errno));
  process.id_ = child;
  process.exited_ = Handle(pidfd);
  process.input_ = std::move(input->write);
  process.output_ = std::move(output->read);
  process.errors_ = std::move(errors->read);
  for (const Handle* handle : {&process.input_, &process.output_, &process.errors_})
    make_nonblocking(*handle);
  report->write.close();
  RETURN_IF_ERROR(process.complete_start(plan, go->write.get(), report->read.get()));
  return process;
}

Result<> Process::complete_start(const Plan& plan, int go, int report) {
  if (is_namespace_ && !map_users(id_)) return fail(denied(plan, "cannot map its users", errno));
  if (::write(go, "g", 1) != 1) return fail(denied(plan, "it ended immediately", errno));
  pollfd said{report, POLLIN, 0};
  if (::poll(&said, 1, kill_timeout_ms) == 0)
    return fail(Errc::timeout,
                cat("cannot run ", quote(plan.program, 400), ": it did not start within 10 s"));
  SetupError error;
  if (::read(report, &error, sizeof error) == sizeof error) return fail(describe(plan, error));
  return {};  // exec closed the other end of the pipe
}

Process::Process(Process&& other) noexcept
    : id_(std::exchange(other.id_, -1)),
      is_namespace_(other.is_namespace_),
      folder_(std::exchange(other.folder_, "")),
      inherited_memory_(other.inherited_memory_),
      input_(std::move(other.input_)),
      output_(std::move(other.output_)),
      errors_(std::move(other.errors_)),
      exited_(std::move(other.exited_)) {
}

Process::~Process() {
  if (id_ > 0) kill();
}

ssize_t Process::write(std::string_view text) {
  sigset_t pipe, before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, &before);
  const ssize_t written = ::write(input_.get(), text.data(), text.size());
  const int why = errno;
  constexpr timespec now{0, 0};
  if (written < 0 && why == EPIPE) ::sigtimedwait(&pipe, nullptr, &now);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = why;
  return written;
}

double Process::processor_seconds() const {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(id_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

ExitStatus Process::kill() {
  ExitStatus result;
  if (id_ <= 0) return result;
  // Sent before the leader is reaped: until then its id cannot be reused.
  ::kill(is_namespace_ ? id_ : -id_, SIGKILL);
  pollfd ended{exited_.get(), POLLIN, 0};
  if (::poll(&ended, 1, kill_timeout_ms) == 0) {
    log_error(cat("process ", id_, " did not end within 10 s of being killed"));
  } else {
    rusage used{};
    ::wait4(id_, &result.status, 0, &used);
    const std::uint64_t counted = static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
    result.peak_memory = counted > inherited_memory_ ? counted : 0;
    if (!is_namespace_) wait_for_group(id_);
  }
  id_ = -1;
  for (Handle* handle : {&input_, &output_, &errors_, &exited_}) handle->close();
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  folder_.clear();
  return result;
}

}  // namespace troupe::actors::sandbox
