// What the program that started this process says about its ranks: mpirun (Open MPI) or srun of
// Slurm with --mpi=pmix.
#pragma once

namespace troupe::transports::mpi {

struct StartedRanks {
  bool started = false;  ///< as one of several ranks, or as the only one
  int size = 1, rank = 0;
  int local_size = 1, local_rank = 0;  ///< of this host

  bool on_one_host() const { return local_size == size; }
};

/// Reads the variables OMPI_COMM_WORLD_* of mpirun, or else SLURM_* of a step that has PMIX_RANK.
StartedRanks started_ranks();

}  // namespace troupe::transports::mpi
