#include "actors/sandbox/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "actors/sandbox/helper.h"
#include "engine/base/processes/child_process.h"
#include "engine/base/processes/pipe.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/blocked_signals.h"

namespace troupe::actors::sandbox {
namespace {

constexpr timeval answer_timeout{helper_timeout.count(), 0};

struct Channel {
  Descriptor ours, theirs;
};

Result<Channel> new_channel() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(Errc::io, cat("cannot make a socket pair: ", std::strerror(errno)));
  Channel channel{Descriptor(ends[0]), Descriptor(ends[1])};
  for (const int direction : {SO_RCVTIMEO, SO_SNDTIMEO})
    ::setsockopt(ends[0], SOL_SOCKET, direction, &answer_timeout, sizeof answer_timeout);
  return channel;
}

void make_nonblocking(const Descriptor& descriptor) {
  ::fcntl(descriptor.get(), F_SETFL, ::fcntl(descriptor.get(), F_GETFL) | O_NONBLOCK);
}

std::string no_answer() {
  return cat("did not answer within ", helper_timeout.count(), " s");
}

// A helper that ended, or that is stopped or hangs: it is killed, so that another one can be
// started.
tl::unexpected<Error> helper_lost(HelperProcess& helper) {
  helper.give_up(no_answer());
  return fail(Errc::closed,
              cat("the process that runs reward programs (", helper_name, ") ", helper.ending()));
}

}  // namespace

std::string ExitStatus::text() const {
  return describe_exit(status);
}

Result<Process> Process::start(HelperSupervisor& helpers, const SandboxPlan& plan) {
  // Landlock prevents this too, where the kernel has it.
  if (plan.limits.isolation == Isolation::limits) protect_memory();
  for (int tries = 1;; ++tries) {
    auto helper = helpers.helper();
    RETURN_IF_ERROR(helper);
    auto started = start_by(std::move(*helper), plan);
    if (started || started.error().code != Errc::closed || tries == 2) return started;
  }
}

Result<Process> Process::start_by(std::shared_ptr<HelperProcess> helper, const SandboxPlan& plan) {
  auto input = new_pipe(), output = new_pipe(), errors = new_pipe();
  for (const auto* made : {&input, &output, &errors}) RETURN_IF_ERROR(*made);
  auto channel = new_channel();
  RETURN_IF_ERROR(channel);
  const std::array<int, 4> descriptors{channel->theirs.get(), input->read.get(),
                                       output->write.get(), errors->write.get()};
  if (!helper->send(descriptors)) return helper_lost(*helper);
  channel->theirs.close();
  StartReply reply;
  std::vector<Descriptor> exited;
  if (!send_message(channel->ours.get(), encode(plan)) ||
      !receive_message(channel->ours.get(), &reply, sizeof reply, &exited))
    return helper_lost(*helper);
  if (!reply.started) return fail(reply.code, std::string(reply.what.data()));
  if (exited.size() != 1) return helper_lost(*helper);
  Process process;
  process.id_ = reply.id;
  process.in_namespaces_ = plan.limits.isolation == Isolation::namespaces;
  process.exited_ = std::move(exited[0]);
  process.input_ = std::move(input->write);
  process.output_ = std::move(output->read);
  process.errors_ = std::move(errors->read);
  process.helper_ = std::move(helper);
  process.channel_ = std::move(channel->ours);
  for (const Descriptor* stream : {&process.input_, &process.output_, &process.errors_})
    make_nonblocking(*stream);
  return process;
}

Process::~Process() {
  if (channel_.open()) kill();
}

ssize_t Process::write(std::string_view text) {
  const BlockedSignals pipe{SIGPIPE};
  const ssize_t written = ::write(input_.get(), text.data(), text.size());
  const int why = errno;
  constexpr timespec now{0, 0};
  if (written < 0 && why == EPIPE) ::sigtimedwait(&pipe.signals(), nullptr, &now);
  errno = why;
  return written;
}

std::optional<double> Process::processor_seconds() const {
  UsageReply reply;
  if (helper_->running() && send_message(channel_.get(), {&usage_request, 1}) &&
      receive_message(channel_.get(), &reply, sizeof reply))
    return reply.processor_seconds;
  helper_->give_up(no_answer());
  return std::nullopt;
}

// The kernel has killed the process with the helper, and in namespaces what it had started. Without
// them the rest is its process group, which it cannot leave.
void Process::end_without_helper() const {
  if (!in_namespaces_) ::kill(-id_, SIGKILL);
}

ExitStatus Process::kill() {
  if (!channel_.open()) return {};
  EndReply reply;
  const bool answered = helper_->running() && send_message(channel_.get(), {&kill_request, 1}) &&
                        receive_message(channel_.get(), &reply, sizeof reply);
  if (!answered) {
    helper_->give_up(no_answer());
    end_without_helper();
    reply = {.status = SIGKILL};
  }
  for (Descriptor* each : {&input_, &output_, &errors_, &exited_, &channel_}) each->close();
  helper_.reset();
  id_ = -1;
  return {reply.status, reply.peak_memory, reply.exceeded, reply.used, !answered};
}

}  // namespace troupe::actors::sandbox
