#include "transports/mpi/mpi_world.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "engine/base/environment/module.h"
#include "engine/base/text/text.h"
#include "transports/mpi/mpi_communicator.h"
#include "transports/mpi/started_ranks.h"

namespace troupe::transports::mpi {

bool under_mpirun() {
  return started_ranks().started;
}
int mpirun_size() {
  return started_ranks().size;
}
int mpirun_rank() {
  return started_ranks().rank;
}

void die_with_mpirun() {
  const auto parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(EXIT_FAILURE);  // the parent ended before prctl(): no signal comes
}

void let_rank_0_end_first() {
  if (mpirun_rank() == 0) return;
  std::signal(SIGTERM, SIG_DFL);
  std::this_thread::sleep_for(std::chrono::seconds(3));
}

Result<std::unique_ptr<engine::parallel::Communicator>> mpi_world(MpiOptions options) {
  if (!under_mpirun())
    return fail(
        Errc::usage,
        "groups of several processes must be started by mpirun (mpirun -n 4 troupe ...); this "
        "process was not");
  const auto symbol = load_from_module("libtroupe_mpi.so", start_symbol);
  if (!symbol)
    return fail(Errc::unsupported,
                cat("mpirun started this program, but it was built without MPI or cannot load it (",
                    symbol.error().what,
                    "); install libopenmpi-dev and rebuild, or start it without mpirun"));
  Result<std::unique_ptr<engine::parallel::Communicator>> world = fail(Errc::internal, "");
  reinterpret_cast<Start*> (*symbol)(std::move(options), world);
  return world;
}

}  // namespace troupe::transports::mpi
