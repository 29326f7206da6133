#include "engine/models/packed_weights.h"

namespace troupe::engine::models {

namespace {

// The matrix that the GEMMs of generation multiply by.
Tensor matrix_of(const Decoder& model, const nn::Parameter& weight) {
  const bool is_head = model.spec().labels == 0 && model.head().weight == &weight;
  return is_head ? model.head().matrix() : weight.f32(model.device());
}

}  // namespace

void PackedWeights::refresh() {
  if (!in_use()) return;
  for (auto* weight : model_->weights())
    model_->device().pack(matrix_of(*model_, *weight), type_, weight->packed);
}

PackedWeights::~PackedWeights() {
  if (!in_use()) return;
  for (auto* weight : model_->weights()) weight->packed = {};
}

}  // namespace troupe::engine::models
