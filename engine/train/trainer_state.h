// TrainerState: what a checkpoint stores of a trainer besides tensors.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/train/loss_scale.h"

namespace troupe::engine::train {

struct TrainerState {
  std::int64_t updates = 0;  ///< below the run's steps if the model was not trained in each
  std::optional<LossScale::State> loss_scale;  ///< with precision f16

  /// Keys of the training state of a checkpoint, in their order there.
  static void each_field(auto& self, auto&& field) {
    field("updates", self.updates);
    field("loss_scale", self.loss_scale);
  }
};

}  // namespace troupe::engine::train
