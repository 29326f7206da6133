#include "actors/sandbox/helper_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/sandbox/helper.h"
#include "actors/sandbox/helper_messages.h"
#include "actors/sandbox/temp_folder.h"
#include "engine/base/errors/check.h"
#include "engine/base/log/log.h"
#include "engine/base/processes/child_process.h"
#include "engine/base/processes/pipe.h"
#include "engine/base/text/text.h"

namespace troupe::actors::sandbox {
namespace {

// Longest wait for the end of a helper whose socket was closed, and of one that was killed.
constexpr std::chrono::seconds end_timeout{5};
constexpr std::chrono::milliseconds closing_time{200};

// Nothing of the parent's environment but what the dynamic linker and the sanitizers need.
std::vector<char*> clean_environment() {
  std::vector<char*> out;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view variable(*each), name = variable.substr(0, variable.find('='));
    if (name == "LD_LIBRARY_PATH" || name == "LD_PRELOAD" || name.ends_with("SAN_OPTIONS"))
      out.push_back(*each);
  }
  out.push_back(nullptr);
  return out;
}

// How this program is executed: in a session of its own, with the default signals, and with no
// descriptor but the socket.
class SpawnSettings {
 public:
  explicit SpawnSettings(int socket) {
    ::posix_spawn_file_actions_init(&files_);
    ::posix_spawn_file_actions_adddup2(&files_, socket, helper_socket);
    ::posix_spawn_file_actions_addopen(&files_, 0, "/dev/null", O_RDWR, 0);
    for (const int stream : {1, 2}) ::posix_spawn_file_actions_adddup2(&files_, 0, stream);
    ::posix_spawn_file_actions_addclosefrom_np(&files_, helper_socket + 1);
    ::posix_spawnattr_init(&attributes_);
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setflags(&attributes_,
                               POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&files_);
    ::posix_spawnattr_destroy(&attributes_);
  }

  // Returns 0 or errno.
  int start(pid_t& id) const {
    std::string name(helper_name);
    char* const arguments[] = {name.data(), nullptr};
    const auto environment = clean_environment();
    return ::posix_spawn(&id, "/proc/self/exe", &files_, &attributes_, arguments,
                         environment.data());
  }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

}  // namespace

Result<std::shared_ptr<HelperProcess>> HelperProcess::start() {
  check(can_be_helper(), "main() of a program with sandboxes calls run_if_helper() first");
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(Errc::io, cat("cannot make a socket pair: ", std::strerror(errno)));
  std::shared_ptr<HelperProcess> out(new HelperProcess);
  out->socket_ = Descriptor(ends[0]);
  const Descriptor theirs(ends[1]);
  constexpr timeval timeout{helper_timeout.count(), 0};
  ::setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  pid_t id = -1;
  if (const int error = SpawnSettings(theirs.get()).start(id); error != 0)
    return fail(Errc::io, cat("cannot start the process that runs reward programs (", helper_name,
                              "): ", std::strerror(error)));
  out->id_ = id;
  out->exited_ = open_pidfd(id);
  return out;
}

HelperProcess::~HelperProcess() {
  socket_.close();  // it kills its programs and exits
  if (ending_.empty() && !wait_readable(exited_.get(), end_timeout)) ::kill(id_, SIGKILL);
  reap();
}

bool HelperProcess::running() const {
  return ending_.empty() && !wait_readable(exited_.get(), {});
}

bool HelperProcess::send(std::span<const int> streams) const {
  return running() && send_message(socket_.get(), "s", streams);
}

void HelperProcess::give_up(const std::string& why) {
  if (!ending_.empty()) return;
  // Its socket is closed a moment before its end shows.
  const bool ended = wait_readable(exited_.get(), closing_time);
  if (!ended) ::kill(id_, SIGKILL);  // not waited for yet, so the id is its own
  reap();
  if (!ended) ending_ = cat(why, " and was killed");
}

// The kernel kills a program with its helper, and nobody else removes its folder.
void HelperProcess::reap() {
  if (!ending_.empty()) return;
  int status = SIGKILL;
  if (wait_readable(exited_.get(), end_timeout)) ::waitpid(id_, &status, WNOHANG);
  ending_ = describe_exit(status);
  remove_temp_folders_of(id_);
}

Result<std::shared_ptr<HelperProcess>> HelperSupervisor::helper() {
  if (helper_ && helper_->running()) return helper_;
  const std::shared_ptr<HelperProcess> before = helper_;
  if (before) before->give_up("");
  auto started = HelperProcess::start();
  RETURN_IF_ERROR(started);
  helper_ = *started;
  if (before)
    log_warning(cat("the process that runs reward programs (", helper_name, ", process ",
                    before->id(), ") ", before->ending(), "; process ", helper_->id(),
                    " takes its place, and completions without a reward are scored again"));
  return helper_;
}

}  // namespace troupe::actors::sandbox
