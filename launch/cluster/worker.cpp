#include "launch/cluster/worker.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "actors/group/sharded.h"
#include "actors/runtime/node.h"
#include "actors/runtime/thread_scheduler.h"
#include "engine/base/log/log.h"
#include "engine/base/processes/pipe.h"
#include "engine/base/text/text.h"
#include "engine/parallel/all_reduce.h"
#include "launch/cluster/assignment.h"
#include "launch/run/exit_code.h"
#include "launch/run/hangs.h"
#include "launch/run/interrupt.h"
#include "launch/run/rank_resources.h"
#include "launch/run/resumable.h"
#include "launch/run/role_table.h"
#include "launch/run/run_rank.h"
#include "transports/mpi/mpi_world.h"
#include "transports/mpi/started_ranks.h"
#include "transports/zmq/spoke.h"

namespace troupe::launch::cluster {
namespace {

namespace group = actors::group;
using engine::parallel::Communicator, engine::parallel::Mesh;

constexpr std::size_t max_assignment_bytes = 1u << 20;
constexpr std::chrono::seconds assignment_timeout{30};

// One line of stdin, read byte by byte: the rest stays for wait_for_end_of_input().
Result<std::string> read_line() {
  std::string line;
  for (char c = 0; line.size() < max_assignment_bytes;) {
    if (!wait_readable(STDIN_FILENO, assignment_timeout))
      return fail(Errc::timeout, "received no assignment from launch within 30 s");
    const ssize_t count = ::read(STDIN_FILENO, &c, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      return fail(
          Errc::closed,
          "launch exited before it sent an assignment; `troupe worker` is started by `troupe "
          "launch`");
    if (c == '\n') return line;
    line += c;
  }
  return fail(Errc::bad_input,
              cat("the assignment is longer than ", max_assignment_bytes, " bytes"));
}

// Blocks until launch closes our stdin.
void wait_for_end_of_input() {
  std::array<char, 256> ignored;
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, ignored.data(), ignored.size());
    if (count == 0 || (count < 0 && errno != EINTR)) return;
  }
}

// Called on the transport's thread if launch no longer responds, so that it cannot stop this
// process, or does not want it any more.
void on_hub_event(const transports::PeerEvent& event) {
  if (event.what == transports::PeerEvent::What::joined) return;
  if (event.what == transports::PeerEvent::What::fenced) {
    log_error(cat("the controller refuses this process: ", event.why));
    ::_exit(run::exit_fenced);
  }
  log_error(cat("lost the connection to the controller: ", event.why));
  ::_exit(run::exit_code(Errc::closed));
}

transports::SpokeOptions spoke_options(const Assignment& a) {
  transports::SpokeOptions options{
      .name = a.node, .hub = "controller", .endpoint = a.endpoint, .hub_public_key = a.server_key};
  options.keys = {a.public_key, a.secret_key};
  options.link.on_peer = on_hub_event;
  options.link.silence = a.config.recovery.silence_time();
  return options;
}

// One rank. Without a world it is the whole group; with one, rank 0 receives the messages and the
// other ranks execute their part of each.
class Worker {
 public:
  Worker(const Assignment& assignment, std::unique_ptr<Communicator> world)
      : assignment_(assignment),
        hangs_(std::chrono::seconds(assignment.config.train.timeout), ""),  // the log has ranks
        profile_(assignment.config, assignment.node, false),
        output_(engine::checkpoint::DirectoryLock::inherited(assignment.config.output)),
        world_(std::move(world)),
        channel_(world_ ? std::make_shared<group::GroupChannel>(split()) : nullptr) {}

  int run() {
    int code = 0;
    run::visit_role(assignment_.role, [&]<recipes::Role R>() { code = serve<R>(); });
    return code;
  }

 private:
  bool leads() const { return !world_ || world_->rank() == 0; }
  std::unique_ptr<Communicator> split() { return world_->split(0, world_->rank()); }

  std::shared_ptr<const run::TextModel> text() const {
    const config::RunConfig& config = assignment_.config;
    return value_or_throw(
        run::TextModel::load(config, run::spec_of_run(config, assignment_.resume_from)));
  }

  template <recipes::Role R>
  int serve() {
    if constexpr (run::RoleEntryOf<R>::has_model)
      return serve_model<R>();
    else
      return lead(
          std::make_unique<run::RoleActor<R>>(run::role_entry<R>().make(assignment_.config)));
  }

  template <recipes::Role R>
  int serve_model() {
    using Actor = run::RoleActor<R>;
    const std::shared_ptr<const run::TextModel> shared_text =
        run::role_entry<R>().reads_text ? text() : nullptr;
    const auto make = [&](Mesh mesh) {
      return run::make_role_on_rank<Actor>(
          {run::cpu_of(assignment_.config, run::part_of_process(1)), std::move(mesh), &profile_},
          [&](const run::RankResources& rank) {
            const Mesh* shared_mesh = channel_ ? rank.mesh.get() : nullptr;
            return run::role_entry<R>().make({assignment_.config, assignment_.resume_from,
                                              *rank.device, shared_mesh,
                                              leads() ? &output_ : nullptr, shared_text});
          });
    };
    if (!channel_) return lead(make(Mesh()));
    const std::string name(to_string(R));
    std::unique_ptr<run::RoleOnRank<Actor>> role;
    channel_->run_on_all_ranks(cat("creating the ", name), [&] {
      role = make(value_or_throw(Mesh::create(split(), assignment_.grid)));
    });
    if (leads())
      return lead(std::make_unique<group::Sharded<run::RoleOnRank<Actor>>>(
          name, std::exchange(channel_, nullptr), std::move(role)));
    group::HandlerTable handlers;
    handlers.add(name, *role);
    handlers.serve(*channel_);
    return 0;
  }

  template <class A>
  int lead(std::unique_ptr<A> actor) {
    const auto spoke = value_or_throw(transports::Spoke::create(spoke_options(assignment_)));
    actors::ThreadScheduler scheduler;
    actors::Node node(assignment_.node, scheduler, *spoke);
    node.spawn(std::string(to_string(assignment_.role)), std::move(actor));
    spoke->open();
    log_debug(cat("connected to ", assignment_.endpoint));
    log_info(cat(assignment_.node, ": process ", ::getpid(), " is ready"));
    wait_for_end_of_input();
    ::alarm(2);  // limits the wait for a running handler
    node.stop();
    spoke->close();
    return 0;
  }

  const Assignment& assignment_;
  const run::HangGuard hangs_;  // until the rank has left the group
  profile::RunProfile profile_;
  const engine::checkpoint::DirectoryLock output_;
  std::unique_ptr<Communicator> world_;
  std::shared_ptr<group::GroupChannel> channel_;
};

// Broadcasts the assignment of rank 0 without its keys.
Assignment broadcast_assignment(Communicator& world) {
  Assignment own;
  std::string line;
  if (world.rank() == 0) {
    own = value_or_throw(assignment_of(value_or_throw(read_line())));
    Assignment others = own;
    others.public_key.clear();
    others.secret_key.clear();
    line = to_line(others);
  }
  const auto lines = engine::parallel::gather_strings(world, line, "the assignment");
  return world.rank() == 0 ? own : value_or_throw(assignment_of(lines.front()));
}

/// The assignment as this rank has it, on a host that is like the controller's. Throws Failure.
Assignment prepared(Assignment assignment, const std::string& build) {
  auto& threads = assignment.config.train.threads;
  if (threads == 0) threads = run::part_of_process(assignment.ranks_together);
  const bool first_of_host = transports::mpi::started_ranks().local_rank == 0;
  if (!assignment.build.empty() && first_of_host)
    value_or_throw(check_host(build, assignment.build, assignment.inputs));
  return assignment;
}

// The failure of one rank ends the group with its reason: the communicators, destroyed by an
// exception that leaves, would not know it. Ranks usually fail alike, and rank 0 speaks for them.
int serve_in_group(std::int64_t timeout, const std::string& build) {
  auto world = value_or_throw(transports::mpi::mpi_world(run::mpi_options(timeout)));
  const auto own = world->split(0, world->rank());
  try {
    const Assignment assignment = prepared(broadcast_assignment(*world), build);
    return Worker(assignment, std::move(world)).run();
  } catch (const std::exception& error) {
    transports::mpi::let_rank_0_end_first();
    run::abort_ranks(*own, error);
    throw;
  }
}

}  // namespace

int worker(std::int64_t timeout, const std::string& build) {
  // The controller decides when to stop.
  run::ignore_interrupts(run::KeepTerm::yes);
  transports::mpi::die_with_mpirun();
  if (!transports::mpi::under_mpirun()) {
    const Assignment assignment =
        prepared(value_or_throw(assignment_of(value_or_throw(read_line()))), build);
    return Worker(assignment, nullptr).run();
  }
  return serve_in_group(timeout, build);
}

}  // namespace troupe::launch::cluster
