// Transfer of weights from the policy to the rollouts, with checksums and a probe by which the
// receiver verifies them.
#pragma once

#include "actors/protocol/train.h"
#include "engine/models/spec.h"
#include "engine/train/trainer.h"

namespace troupe::actors::roles {

/// Returns the current weights as `version`, with checksums and probe. Collective over the mesh;
/// only rank 0's result has the weights.
protocol::Weights publish(engine::train::Trainer& trainer, const engine::parallel::Mesh* mesh,
                          std::uint64_t version = 0);

/// Compares sizes and checksums with those of a model of this shape. Errc::bad_input; corrupt,
/// naming the tensor.
Result<> verify(const protocol::Weights& weights, const engine::models::DecoderSpec& spec);

/// The probe's tokens as a batch that selects all of them.
engine::data::Experience probe_batch(const std::vector<std::int32_t>& tokens);

}  // namespace troupe::actors::roles
