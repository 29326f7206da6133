// Settings with which the models of a run would fit into the memory.
#pragma once

#include <string>

#include "launch/config/run_config.h"
#include "launch/memory/check_memory.h"

namespace troupe::launch::memory {

/// A sentence for the end of a refusal: an adapter, states in bf16, parallel.zero over the
/// replicas that the run has, and the smallest numbers of hosts like this one over which
/// parallel.tp, parallel.pp and parallel.zero divide it; each with the bytes of its weights,
/// gradients and optimizer state, which fit. Only settings that the run accepts are named.
std::string what_fits(const config::RunConfig& config, const MemoryPlace& place);

}  // namespace troupe::launch::memory
