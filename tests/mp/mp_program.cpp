// mp_program SCENARIO: runs on every rank of a test under mpirun. under_mpirun.sh starts it and
// checks how it ended.
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <thread>

#include "tests/mp/actor.h"
#include "tests/mp/collectives.h"
#include "tests/support/hostile.h"
#include "tests/support/on_ranks.h"
#include "tests/support/operation_oracle.h"
#include "tests/support/stage_generation.h"
#include "transports/mpi/mpi_world.h"

namespace {

using namespace troupe;
using engine::parallel::Communicator;

int said(bool ok, const std::string& what) {
  std::cerr << (ok ? what : "WRONG: " + what) + "\n";
  return ok ? 0 : 1;
}

/// The bits of processes are those of threads: each rank runs the script once more, as one thread
/// of a group of threads.
int collectives(Communicator& world) {
  const std::string got = test::run_script(world);
  std::string expected;
  test::on_ranks(world.size(), [&](Communicator& group) {
    auto mine = test::run_script(group);
    if (group.rank() == world.rank()) expected = std::move(mine);
  });
  return said(got == expected && got.size() > 1000000,
              std::to_string(got.size()) + " bytes as threads give them");
}

double cpu_seconds() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

/// Followers that wait for the leader's next message leave the core to others.
int idle(Communicator& world) {
  constexpr double pause = 3;
  std::byte message{};
  engine::parallel::barrier(world, "the start");
  const double before = cpu_seconds();
  if (world.rank() == 0)
    std::this_thread::sleep_for(
        std::chrono::duration<double>(pause));  // what is measured is this time
  world.broadcast_idle(std::span(&message, 1), 0, "the next message");
  const double share = (cpu_seconds() - before) / pause;
  return said(share < 0.05, "rank " + std::to_string(world.rank()) + " used " +
                                std::to_string(100 * share) + " % of a core while idle");
}

/// Prints the time for under_mpirun.sh, which measures how long the other ranks outlive this one.
void say_when() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::cerr << "ends at " << std::chrono::nanoseconds(now).count() << std::endl;
}

/// Rank 1 is gone without a word; the others wait for it.
int killed(Communicator& world) {
  engine::parallel::barrier(world, "the start");
  if (world.rank() == 1) {
    say_when();
    std::raise(SIGKILL);
  }
  std::byte message{};
  world.broadcast_idle(std::span(&message, 1), 1, "what never comes");
  return said(false, "rank 1 came back");
}

/// Rank 1 ends the group with its words.
int aborted(Communicator& world) {
  engine::parallel::barrier(world, "the start");
  if (world.rank() == 1) {
    say_when();
    world.abort("the disk is full");
  }
  engine::parallel::barrier(world, "what never comes");
  return said(false, "rank 1 came back");
}

/// Rank 1 throws, and its communicator goes with it.
int thrown(Communicator& world) {
  engine::parallel::barrier(world, "the start");
  if (world.rank() == 1) {
    say_when();
    throw Failure(Error{Errc::io, "the disk is gone"});
  }
  engine::parallel::barrier(world, "what never comes");
  return said(false, "rank 1 came back");
}

/// A group of processes is one actor; its followers end when rank 0's node does.
int actor(Communicator& world) {
  const std::string wrong = test::ask_an_actor(world);
  return said(wrong.empty(), wrong.empty() ? "replies as threads give them" : wrong);
}

/// A mistake of rank 1 in a handler ends the group with its words.
int mistaken(Communicator& world) {
  if (world.rank() == 1) say_when();
  return said(false, test::ask_for_a_mistake(world));
}

/// All wait for mpirun to be killed under them (by under_mpirun.sh).
int orphaned(Communicator& world) {
  engine::parallel::barrier(world, "the start");
  if (world.rank() == 0) std::cerr << "ready" << std::endl;
  std::byte message{};
  if (world.rank() == 0) std::this_thread::sleep_for(std::chrono::minutes(5));
  world.broadcast_idle(std::span(&message, 1), 0, "what never comes");
  return said(false, "nobody ended the group");
}

/// Rank 1 never comes to what the others wait for.
int late(Communicator& world) {
  engine::parallel::barrier(world, "the start");
  if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::minutes(5));
  engine::parallel::barrier(world, "gradients of step 7");
  return said(false, "the deadline was not kept");
}

/// Rank 1 waits for rank 2, which never comes, and the last rank for rank 1: rank 2 is named.
int behind(Communicator& world) {
  engine::parallel::barrier(world, "the start");
  std::vector<std::byte> row(8);
  const int last = world.size() - 1;
  if (world.rank() == 2) std::this_thread::sleep_for(std::chrono::minutes(5));
  if (world.rank() == 1) {
    world.start_receive(row, 2, "activations").wait(std::chrono::minutes(1));
    world.send(row, last, "activations");
  }
  if (world.rank() == last) world.receive(row, 1, "activations");
  std::this_thread::sleep_for(std::chrono::minutes(5));
  return said(false, "the deadline was not kept");
}

/// Every non-blocking operation against plain loops, in the world and in pairs of it.
int operations(Communicator& world) {
  std::string wrong = test::wrong_operation(world);
  const auto pair = world.split(world.rank() / 2, -world.rank());
  if (wrong.empty()) wrong = test::wrong_operation(*pair);
  return said(wrong.empty(), wrong.empty() ? "operations as plain loops give them" : wrong);
}

/// A gathering with a fault of rank 1, which every rank has to notice.
int faulty(Communicator& world, const std::string& scenario) {
  const engine::parallel::HostileOptions none,
      fault{.lose_at = scenario == "lost" ? 1 : -1, .shorten_at = scenario == "shortened" ? 1 : -1};
  const auto own = engine::parallel::make_hostile(world.split(0, world.rank()),
                                                  world.rank() == 1 ? fault : none);
  std::vector<std::byte> mine(8), all(8 * static_cast<std::size_t>(world.size()));
  const std::vector<std::size_t> counts(static_cast<std::size_t>(world.size()), mine.size());
  own->start_all_gather(mine, all, counts, "weights of step 6").wait();
  {
    const bool misnamed = scenario == "misnamed" && world.rank() == 1;
    auto started = own->start_all_gather(mine, all, counts,
                                         misnamed ? "weights of step 8" : "weights of step 7");
    if (scenario != "unwaited") started.wait();
  }
  return said(false, "the fault was not noticed");
}

/// Generation over stages: the bits of one rank, which this process computes once more by itself.
int stages(Communicator& world) {
  test::StageGeneration run{.model = test::deep(test::grid_models()[1])};
  const engine::parallel::Mesh mesh = value_or_throw(
      engine::parallel::Mesh::create(world.split(0, world.rank()), {.pp = world.size()}));
  const std::string expected = test::generated_text(run, {}) + test::beams_text(run, {}),
                    got = test::generated_text(run, mesh) + test::beams_text(run, mesh);
  return said(got == expected && got.size() > 1000, "tokens of stages as one rank gives them");
}

int run(const std::string& scenario, Communicator& world) {
  if (scenario == "collectives" || scenario == "blocks") return collectives(world);
  if (scenario == "operations" || scenario == "messages") return operations(world);
  if (scenario == "lost" || scenario == "shortened" || scenario == "misnamed" ||
      scenario == "unwaited")
    return faulty(world, scenario);
  if (scenario == "idle") return idle(world);
  if (scenario == "killed") return killed(world);
  if (scenario == "stages") return stages(world);
  if (scenario == "aborted") return aborted(world);
  if (scenario == "thrown") return thrown(world);
  if (scenario == "actor") return actor(world);
  if (scenario == "mistaken") return mistaken(world);
  if (scenario == "orphaned") return orphaned(world);
  if (scenario == "late") return late(world);
  if (scenario == "behind") return behind(world);
  return said(false, "no scenario '" + scenario + "'");
}

}  // namespace

int main(int count, char** arguments) {
  transports::mpi::die_with_mpirun();
  std::string scenario = count > 1 ? arguments[1] : "";
  transports::mpi::MpiOptions options;
  if (scenario.starts_with("mpi_")) {
    options.shared_memory = false;
    scenario.erase(0, 4);
  }
  if (scenario == "blocks") options.max_block_bytes = 1009;  // a prime: blocks end inside of values
  if (scenario == "messages") options.max_block_bytes = 101;
  if (scenario == "late" || scenario == "lost") options.deadline = std::chrono::milliseconds(300);
  if (scenario == "behind") options.deadline = std::chrono::milliseconds(2500);
  options.exit_code = [](Errc code) { return code == Errc::timeout ? 8 : 70; };
  auto world = transports::mpi::mpi_world(options);
  if (!world) return said(false, world.error().what);
  if ((*world)->size() != transports::mpi::mpirun_size() ||
      (*world)->rank() != transports::mpi::mpirun_rank())
    return said(false, "mpirun's variables and MPI do not agree");
  try {
    return run(scenario, **world);
  } catch (const Failure& failure) {  // thrown in the module or here
    (*world)->abort(failure.error().what);
    return 1;
  }
}
