// The time of a run as a range, from its floating-point operations and the rate of the machine.
#pragma once

#include <string>

#include "engine/models/spec.h"
#include "launch/commands/explain/machine.h"
#include "launch/commands/explain/run_size.h"
#include "launch/config/run_config.h"

namespace troupe::launch::commands {

/// FLOPs for each parameter and token: 6 of training (4 of an adapter, as the model's weights have
/// no gradient), 2 of each pass that only scores or samples.
double flops_per_parameter(const config::RunConfig& config, const RunSize& size);

struct TimeRange {
  double least = 0, most = 0;  ///< seconds
};

/// Without evaluations, checkpoints and reward programs. `least`: all products at `flops` FLOP/s,
/// with the shortest completions and what async.mode can overlap. `most`: with the longest ones;
/// products of a small width, element-wise operations and, in sampling, the reading of all weights
/// for a token of each sequence take longer than the square product of the rate.
TimeRange time_of_run(const config::RunConfig& config, const engine::models::DecoderSpec& spec,
                      const RunSize& size, double flops);

/// Lines for `troupe explain`: the time, and what async.mode lets overlap.
std::string time_text(const config::RunConfig& config, const engine::models::DecoderSpec& spec,
                      const RunSize& size, const MachineRate& rate);

}  // namespace troupe::launch::commands
