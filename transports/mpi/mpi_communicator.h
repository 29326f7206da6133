// Entry point of libtroupe_mpi.so, which implements the Communicator port over MPI.
#pragma once

#include "transports/mpi/mpi_world.h"

namespace troupe::transports::mpi {

using Start = void(MpiOptions, Result<std::unique_ptr<engine::parallel::Communicator>>&);
constexpr const char* start_symbol = "troupe_start_mpi";

}  // namespace troupe::transports::mpi
