// Transfer of weights from the policy to the rollouts, with checksums and a probe by which the
// receiver verifies them.
#pragma once

#include "actors/protocol/train.h"
#include "actors/roles/weight_assembly.h"
#include "engine/models/spec.h"
#include "engine/train/trainer.h"

namespace troupe::actors::roles {

/// Returns the current weights as `version`, with checksums and probe. Collective over the mesh;
/// only rank 0's result has the weights.
protocol::Weights publish(engine::train::Trainer& trainer, const engine::parallel::Mesh* mesh,
                          std::uint64_t version = 0);

/// The same for other processes, as the message says. The result has the values, too, which the
/// caller keeps for ReadWeights.
protocol::Weights publish_in_parts(engine::train::Trainer& trainer,
                                   const engine::parallel::Mesh* mesh,
                                   const protocol::Publish& message);

/// Adds the values that arrived before the message, if it has none. Errc::bad_input: parts are
/// missing.
Result<> complete(protocol::Weights& weights, WeightAssembly& arriving);

/// Values of the trained logical tensors of a model.
std::size_t trained_values(const engine::models::DecoderSpec& spec);

/// Compares sizes and checksums with those of a model of this shape. Errc::bad_input; corrupt,
/// naming the tensor.
Result<> verify(const protocol::Weights& weights, const engine::models::DecoderSpec& spec);

/// Whether the model can read published values where they lie, because this rank has all of it.
bool reads_in_place(const engine::models::Decoder& model);

/// Makes published values, or this rank's part of them, those of the trained parameters: read where
/// they lie if the model can, otherwise copied. Another length is a Bug.
void set_values(const SharedArray<float>& values, engine::models::Decoder& model);

/// The probe's tokens as a batch that selects all of them.
engine::data::Experience probe_batch(const std::vector<std::int32_t>& tokens);

}  // namespace troupe::actors::roles
