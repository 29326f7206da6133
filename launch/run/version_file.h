// The file of one version of the weights in a checkpoint of async.mode pinned: the values, the
// checksums of the tensors and the probe, as tensors of a safetensors file.
#pragma once

#include <cstdint>
#include <string>

#include "actors/protocol/train.h"
#include "engine/models/spec.h"

namespace troupe::launch::run {

/// Durably. Throws Failure: Errc::io.
void write_version(const std::string& path, const actors::protocol::Weights& weights);
/// Compares the number of the version, the number of values and the checksums of the tensors with
/// those of a model of this shape. Throws Failure: Errc::not_found, corrupt; both name the file.
actors::protocol::Weights read_version(const std::string& path, std::uint64_t version,
                                       const engine::models::DecoderSpec& spec);

}  // namespace troupe::launch::run
