// The space on disk that the checkpoints of a run need.
#pragma once

#include <cstdint>

#include "engine/models/spec.h"
#include "launch/config/run_config.h"

namespace troupe::launch::run {

/// Values that the run trains: those of the adapter, or of the whole model of shape `spec`. Throws
/// Failure.
std::int64_t trained_values(const config::RunConfig& config,
                            const engine::models::DecoderSpec& spec);

/// Bytes of the tensors of one checkpoint: weights and AdamW's moments of the policy and the
/// critic, and the weights of a reference that moves. Throws Failure.
std::uint64_t checkpoint_bytes(const config::RunConfig& config,
                               const engine::models::DecoderSpec& spec);

/// Compares checkpoint_bytes with what is free in config.output. Throws Failure (Errc::io) if not
/// even one checkpoint fits; warns if those that train.keep_last keeps do not.
void check_checkpoint_space(const config::RunConfig& config,
                            const engine::models::DecoderSpec& spec);

/// From now on the files of the run wait for space on a full disk as recovery.disk_wait says.
void wait_for_space(const config::RunConfig& config);

}  // namespace troupe::launch::run
