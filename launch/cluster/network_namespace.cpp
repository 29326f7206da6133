#include "launch/cluster/network_namespace.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "engine/base/files/descriptor.h"
#include "engine/base/files/environment_error.h"
#include "engine/base/log/log.h"
#include "engine/base/processes/child_process.h"
#include "engine/base/processes/pipe.h"
#include "engine/base/text/text.h"

namespace troupe::launch::cluster {
namespace {

// Time for the child process that tries a namespace, on a busy machine.
constexpr std::chrono::seconds trial_timeout{10};

tl::unexpected<Error> denied(const char* what) {
  return fail(Errc::unsupported, cat("cannot ", what, ": ", reason_of(errno)));
}

bool write_proc_file(const char* path, const std::string& text) {
  const Descriptor file(::open(path, O_WRONLY | O_CLOEXEC));
  return file.open() &&
         ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// user_namespaces(7): a user may map only itself, and its group only after giving up setgroups().
bool map_own_user(uid_t user, gid_t group) {
  return write_proc_file("/proc/self/setgroups", "deny") &&
         write_proc_file("/proc/self/uid_map", cat(user, " ", user, " 1")) &&
         write_proc_file("/proc/self/gid_map", cat(group, " ", group, " 1"));
}

bool activate_loopback() {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq interface {};
  std::strcpy(interface.ifr_name, "lo");
  if (!socket.open() || ::ioctl(socket.get(), SIOCGIFFLAGS, &interface) != 0) return false;
  interface.ifr_flags = static_cast<short>(interface.ifr_flags | IFF_UP);
  return ::ioctl(socket.get(), SIOCSIFFLAGS, &interface) == 0;
}

// Output of a child until it exits, which must be soon.
std::string output_of(ChildProcess& child) {
  std::string all;
  std::array<char, 4096> bytes;
  if (!wait_readable(child.exit_fd(), trial_timeout)) child.signal(SIGKILL);
  wait_readable({{child.exit_fd()}}, std::chrono::steady_clock::time_point::max());
  for (ssize_t count; (count = ::read(child.output_fd(), bytes.data(), bytes.size())) > 0;)
    all.append(bytes.data(), static_cast<std::size_t>(count));
  return all;
}

}  // namespace

Result<> enter_network_namespace() {
  const pid_t parent = ::getppid();
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  int parent_signal = 0;
  ::prctl(PR_GET_PDEATHSIG, &parent_signal);
  // Root keeps its access to the files of all users, which a user namespace would take.
  if (::unshare(user == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) != 0)
    return denied("create a network namespace");
  if (user != 0 && !map_own_user(user, group)) return denied("map the user into a namespace");
  if (!activate_loopback()) return denied("activate the loopback interface of a namespace");
  if (parent_signal == 0) return {};
  // A change of capabilities may clear the signal.
  ::prctl(PR_SET_PDEATHSIG, parent_signal);
  if (::getppid() != parent) ::raise(parent_signal);
  return {};
}

int run_in_network_namespace(const std::vector<std::string>& command) {
  const auto entered = enter_network_namespace();
  if (command.empty()) {
    value_or_throw(entered);
    return 0;
  }
  if (!entered) log_warning(open_ports_warning(entered.error().what));
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::signal(SIGXFSZ, SIG_DFL);
  ::execvp(arguments[0], arguments.data());
  throw Failure({errno == ENOENT ? Errc::not_found : Errc::io,
                 cat("cannot run ", quote(command[0]), ": ", reason_of(errno))});
}

std::optional<std::string> network_namespace_denied(const std::string& program) {
  auto child = ChildProcess::start({program, "loopback"});
  if (!child) return child.error().what;
  std::string said = output_of(*child);
  const auto status = child->reap();
  if (status && WIFEXITED(*status) && WEXITSTATUS(*status) == 0) return std::nullopt;
  said.erase(said.find_last_not_of('\n') + 1);
  const std::string prefix = "troupe: ";
  if (said.starts_with(prefix)) said.erase(0, prefix.size());
  return said.empty() ? describe_exit(status.value_or(0)) : said;
}

std::string open_ports_warning(const std::string& why) {
  return cat(
      "mpirun listens on two ports of all network interfaces, because the system denies a "
      "network namespace (",
      why, "); use a firewall or a machine of trusted users (docs/security.md)");
}

}  // namespace troupe::launch::cluster
