#include "actors/sandbox/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "actors/sandbox/helper.h"
#include "engine/base/log.h"
#include "engine/base/text.h"

namespace troupe::actors::sandbox {
namespace {

// Longer than the helper's own limits, so that its message arrives.
constexpr timeval answer_timeout{25, 0};

struct Channel {
  Descriptor ours, theirs;
};

Result<Channel> new_channel() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(Errc::io, cat("cannot make a socket pair: ", std::strerror(errno)));
  Channel channel{Descriptor(ends[0]), Descriptor(ends[1])};
  ::setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &answer_timeout, sizeof answer_timeout);
  return channel;
}

Result<Channel> new_stream() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return fail(Errc::io, cat("cannot make a pipe: ", std::strerror(errno)));
  return Channel{Descriptor(ends[0]), Descriptor(ends[1])};
}

void make_nonblocking(const Descriptor& descriptor) {
  ::fcntl(descriptor.get(), F_SETFL, ::fcntl(descriptor.get(), F_GETFL) | O_NONBLOCK);
}

tl::unexpected<Error> helper_lost() {
  return fail(Errc::closed, "the process that starts reward programs (troupe-sandbox) has ended");
}

}  // namespace

std::string ExitStatus::text() const {
  if (WIFSIGNALED(status))
    return cat("was killed by signal ", WTERMSIG(status), " (", ::strsignal(WTERMSIG(status)), ")");
  return cat("ended with exit code ", WEXITSTATUS(status));
}

Result<Process> Process::start(const Plan& plan) {
  auto input = new_stream(), output = new_stream(), errors = new_stream(), channel = new_channel();
  for (const auto* made : {&input, &output, &errors, &channel}) RETURN_IF_ERROR(*made);
  const int helper = helper_socket();
  // Landlock prevents this too, where the kernel has it.
  if (plan.limits.isolation == Isolation::limits) protect_memory();
  const std::array<int, 4> descriptors{channel->theirs.get(), input->ours.get(),
                                       output->theirs.get(), errors->theirs.get()};
  if (helper < 0 || !send_message(helper, "s", descriptors)) return helper_lost();
  channel->theirs.close();
  StartReply reply;
  std::vector<Descriptor> exited;
  if (!send_message(channel->ours.get(), encode(plan)) ||
      !receive_message(channel->ours.get(), &reply, sizeof reply, &exited))
    return helper_lost();
  if (!reply.started) return fail(reply.code, std::string(reply.what.data()));
  if (exited.size() != 1) return helper_lost();
  Process process;
  process.id_ = reply.id;
  process.exited_ = std::move(exited[0]);
  process.input_ = std::move(input->theirs);
  process.output_ = std::move(output->ours);
  process.errors_ = std::move(errors->ours);
  process.helper_ = std::move(channel->ours);
  for (const Descriptor* stream : {&process.input_, &process.output_, &process.errors_})
    make_nonblocking(*stream);
  return process;
}

Process::~Process() {
  if (helper_.open()) kill();
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
  UsageReply reply;
  const bool answered = send_message(helper_.get(), {&usage_request, 1}) &&
                        receive_message(helper_.get(), &reply, sizeof reply);
  return answered ? reply.processor_seconds : 0;
}

ExitStatus Process::kill() {
  if (!helper_.open()) return {};
  EndReply reply;
  if (!send_message(helper_.get(), {&kill_request, 1}) ||
      !receive_message(helper_.get(), &reply, sizeof reply)) {
    log_error(cat("process ", id_, ": no report of its end"));
    reply.status = SIGKILL;
  }
  for (Descriptor* each : {&input_, &output_, &errors_, &exited_, &helper_}) each->close();
  id_ = -1;
  return {reply.status, reply.peak_memory, reply.exceeded, reply.used};
}

}  // namespace troupe::actors::sandbox
