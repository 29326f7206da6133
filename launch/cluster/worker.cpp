#include "launch/cluster/worker.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "actors/runtime/node.h"
#include "actors/runtime/thread_scheduler.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "launch/cluster/assignment.h"
#include "launch/exit_code.h"
#include "launch/run/roles.h"
#include "transports/mpi/mpi_world.h"
#include "transports/zmq/spoke.h"

namespace troupe::launch {
namespace {

constexpr std::size_t longest_line = 1u << 20;
constexpr int patience_ms = 30'000;

// One line of stdin, read byte by byte so that nothing behind it is taken.
Result<std::string> read_line() {
  std::string line;
  for (char c = 0; line.size() < longest_line;) {
    pollfd in{STDIN_FILENO, POLLIN, 0};
    if (::poll(&in, 1, patience_ms) == 0) return fail(Errc::timeout, "no assignment came from launch within 30 s");
    const ssize_t count = ::read(STDIN_FILENO, &c, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return fail(Errc::closed, "launch went before it gave an assignment; `troupe worker` is started by `troupe launch`");
    if (c == '\n') return line;
    line += c;
  }
  return fail(Errc::bad_input, cat("the assignment is longer than ", longest_line, " bytes"));
}

// Blocks until launch lets go of us.
void wait_for_the_end() {
  std::array<char, 256> ignored;
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, ignored.data(), ignored.size());
    if (count == 0 || (count < 0 && errno != EINTR)) return;
  }
}

// On the transport's thread: launch is there but does not speak any more, so nobody will end us.
void when_the_hub_is_lost(const transports::PeerEvent& event) {
  if (event.what != transports::PeerEvent::What::lost) return;
  log_error(cat("the controller is lost: ", event.why));
  ::_exit(exit_code(Errc::closed));
}

class Worker {
 public:
  explicit Worker(const Assignment& assignment)
      : assignment_(assignment),
        device_(engine::ops::make_cpu_device({.threads = static_cast<int>(assignment.config.train.threads)})),
        output_(engine::checkpoint::DirectoryLock::held_by_launch(assignment.config.output)),
        spoke_(value_or_throw(transports::Spoke::create({.name = assignment.node,
                                                         .hub = "controller",
                                                         .endpoint = assignment.endpoint,
                                                         .keys = {assignment.public_key, assignment.secret_key},
                                                         .hub_public_key = assignment.server_key,
                                                         .link = link_options()}))) {}

  int run() {
    spawn();
    spoke_->open();
    log_info(cat(assignment_.node, ": process ", ::getpid(), " is ready"));
    wait_for_the_end();
    ::alarm(2);  // a handler that is still at work is not waited for any longer
    node_.stop();
    spoke_->close();
    return 0;
  }

 private:
  static transports::LinkOptions link_options() {
    transports::LinkOptions options;
    options.on_peer = when_the_hub_is_lost;
    return options;
  }

  void spawn() {
    const RunConfig& config = assignment_.config;
    const std::string& role = assignment_.role;
    if (role == "policy")
      node_.spawn(role, make_policy(parts_, output_));
    else if (role == "reference")
      node_.spawn(role, make_reference(parts_));
    else if (role == "rollout")
      node_.spawn(
          role,
          make_rollout(parts_, value_or_throw(TextModel::load(config.model, config.chat_template, spec_of_run(config, assignment_.from)))));
    else if (role == "verifier")
      node_.spawn(role, make_verifier(config));
    else
      throw Failure({Errc::unsupported, cat("no worker can be a ", quote(role))});
  }

  const Assignment& assignment_;
  std::unique_ptr<engine::ops::Device> device_;
  const engine::checkpoint::DirectoryLock output_;
  const RoleParts parts_{assignment_.config, assignment_.from, *device_};
  std::unique_ptr<transports::Spoke> spoke_;
  actors::ThreadScheduler scheduler_;
  actors::Node node_{assignment_.node, scheduler_, *spoke_};
};

}  // namespace

int worker() {
  transports::mpi::die_with_mpirun();
  const Assignment assignment = value_or_throw(assignment_of(value_or_throw(read_line())));
  return Worker(assignment).run();
}

}  // namespace troupe::launch
