// Weights on their way from the policy to the rollouts: what is sent with them so that the receiver
// can tell that they are right.
#pragma once

#include "actors/protocol/train.h"
#include "engine/models/spec.h"
#include "engine/train/trainer.h"

namespace troupe::actors::roles {

/// The weights of now, with checksums and probe. With a mesh every rank of the group calls it; rank
/// 0's answer has the weights.
protocol::Weights publish(engine::train::Trainer& trainer, const engine::parallel::Mesh* mesh);

/// Compares sizes and checksums with what a model of this shape must have. Errc::bad_input, corrupt
/// (names the tensor).
Result<> verify(const protocol::Weights& weights, const engine::models::DecoderSpec& spec);

/// The probe's tokens as a batch that asks for all of them.
engine::data::Experience probe_batch(const std::vector<std::int32_t>& tokens);

}  // namespace troupe::actors::roles
