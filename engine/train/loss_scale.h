// LossScale: dynamic loss scaling for products in f16 (Micikevicius et al. 2018, arXiv:1710.03740),
// as Megatron-LM's DynamicGradScaler.
//
// Gradients of activations are often below 2^-24, which f16 rounds to 0. So the gradient of the
// loss is multiplied by a scale, and the optimizer divides by it. Where a scaled value overflows,
// the update is skipped.
#pragma once

#include <cstdint>

#include "engine/base/json/ranges.h"

namespace troupe::engine::train {

struct LossScaleConfig {
  double initial = 4294967296;  ///< 2^32
  double minimum = 1;
  std::int64_t window = 1000;   ///< updates without an overflow after which the scale doubles
  std::int64_t hysteresis = 2;  ///< the overflow, counted since it last grew, that first halves it

  static void each_field(auto& self, auto&& field) {
    field("loss_scale.initial", self.initial, Range{0, 1e30, true},
          "train.dtype: f16: factor of the loss at first; an update whose gradient overflows is "
          "skipped");
    field("loss_scale.minimum", self.minimum, Range{0, 1e30, true},
          "the loss scale never falls below this");
    field("loss_scale.window", self.window, count_from_1,
          "updates without an overflow after which the loss scale doubles");
    field("loss_scale.hysteresis", self.hysteresis, count_from_1,
          "number of the overflow, since the loss scale last grew, from which on each halves it");
  }
};

class LossScale {
 public:
  /// Changes from update to update; a checkpoint stores it.
  struct State {
    double scale = 0;
    std::int64_t finite = 0;   ///< updates since the last overflow or growth
    std::int64_t left = 0;     ///< overflows until the scale halves; from 0 on each halves it
    std::int64_t skipped = 0;  ///< updates of the run that were skipped

    static void each_field(auto& self, auto&& field) {
      field("scale", self.scale);
      field("finite", self.finite);
      field("left", self.left);
      field("skipped", self.skipped);
    }
  };

  explicit LossScale(const LossScaleConfig& config)
      : config_(config), state_{.scale = config.initial, .left = config.hysteresis} {}

  double value() const { return state_.scale; }
  const State& state() const { return state_; }
  void restore(const State& state) { state_ = state; }
  /// After an update, which was skipped if a gradient had overflowed.
  void update(bool overflow);

 private:
  LossScaleConfig config_;
  State state_;
};

}  // namespace troupe::engine::train
