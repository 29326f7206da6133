// The machine of an estimate: this one, or one that the options describe.
#pragma once

#include <cstdint>
#include <string>

#include "launch/config/run_config.h"
#include "launch/memory/check_memory.h"

namespace troupe::launch::commands {

/// Options of `troupe explain`; 0: not given.
struct MachineOptions {
  double gflops = 0;  ///< of matrix products on all its cores
  std::int64_t cores = 0;
  std::uint64_t memory = 0;  ///< bytes for the run
  bool measure = false;      ///< measure this machine again
  bool is_other() const { return gflops > 0 || cores > 0 || memory > 0; }
};

/// FLOP/s of a matrix product with the threads of the run.
struct MachineRate {
  double flops = 0;    ///< 0: unknown
  std::string origin;  ///< "207.4 GFLOP/s in f32 on 2 threads, measured on 2026-11-27"
};

/// Of --gflops, or of this machine: from the user's cache, or measured (which takes about a second)
/// and stored there; with --cores in proportion to the threads. Logs a warning where the cache file
/// is another's or damaged, and replaces it; a cache that cannot be written is not used.
MachineRate rate_of(const MachineOptions& machine, const config::RunConfig& config);

/// The memory of the machine for check_memory(). Of another machine without --memory it is not
/// known.
memory::MemoryPlace memory_of(const MachineOptions& machine);

}  // namespace troupe::launch::commands
