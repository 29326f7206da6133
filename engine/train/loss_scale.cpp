#include "engine/train/loss_scale.h"

#include <algorithm>

namespace troupe::engine::train {

void LossScale::update(bool overflow) {
  if (overflow) {
    ++state_.skipped;
    state_.finite = 0;
    --state_.left;
    if (state_.left <= 0) state_.scale = std::max(config_.minimum, state_.scale / 2);
    return;
  }
  if (++state_.finite < config_.window) return;
  state_.finite = 0;
  state_.left = config_.hysteresis;
  state_.scale *= 2;
}

}  // namespace troupe::engine::train
