#include "engine/models/packed_weights.h"

namespace troupe::engine::models {

void PackedWeights::refresh() {
  if (!in_use()) return;
  for (auto* weight : model_->weights())
    model_->device().pack(weight->value, type_, weight->packed);
}

PackedWeights::~PackedWeights() {
  if (!in_use()) return;
  for (auto* weight : model_->weights()) weight->packed = {};
}

}  // namespace troupe::engine::models
