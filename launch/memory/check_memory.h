// Memory of a run compared with what is there, before a model is loaded.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/base/environment/available_memory.h"
#include "engine/base/errors/error.h"
#include "engine/models/spec.h"
#include "launch/config/run_config.h"

namespace troupe::launch::memory {

/// Bytes that a run needs.
struct MemoryNeed {
  std::uint64_t fixed = 0;  ///< weights, gradients and optimizer state of all its models
  std::uint64_t all = 0;    ///< with activations, caches and the program; an estimate
};

/// Where the ranks of a run are.
struct MemoryPlace {
  int processes = 1;    ///< on this machine
  bool threads = true;  ///< the ranks are threads of one process; false: processes
  AvailableMemory room = available_memory(read_memory());
};
/// Of this process: one of mpirun, or one that has all ranks.
MemoryPlace memory_place();

/// What a process needs: all ranks of the run, or the rank that needs most. Throws Failure.
MemoryNeed memory_need(const config::RunConfig& config, const engine::models::DecoderSpec& spec,
                       bool ranks_are_threads);

/// Errc::full if what `processes` processes hold whatever the data exceeds the memory of the
/// machine or the limits of a process; `advice` is then called for the end of the message. Returns
/// a warning if only all that they need does, otherwise "".
Result<std::string> compare_memory(const MemoryNeed& of_process, int processes,
                                   const AvailableMemory& room,
                                   const std::function<std::string()>& advice);

/// compare_memory() of a run, with what_fits() as the advice, and in a warning the settings that
/// lower the rest. Throws Failure where the model cannot be divided.
Result<std::string> check_memory(const config::RunConfig& config,
                                 const engine::models::DecoderSpec& spec, const MemoryPlace& place);

}  // namespace troupe::launch::memory
