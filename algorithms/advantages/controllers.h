// KlControl and EntropyControl: controllers of the coefficients of the KL penalty and of the
// entropy bonus.
#pragma once

#include <array>
#include <string_view>

#include "engine/base/json/fields.h"

namespace troupe::algorithms {

/// Schedule of the KL coefficient. fixed: constant. adaptive (Ziegler et al. 2019, arXiv:1909.08593
/// sec. 2.2): increased while the KL is above its target, decreased while it is below.
enum class KlSchedule { fixed, adaptive };
constexpr std::array<std::string_view, 2> names_of(KlSchedule) {
  return {"fixed", "adaptive"};
}

struct KlControl {
  KlSchedule schedule = KlSchedule::fixed;
  double target = 6;  ///< nats per sequence
  /// Samples over which a KL of 1.2 times the target changes the coefficient by 20 %.
  double horizon = 10000;

  static void each_field(auto& self, auto&& field) {
    field("kl_schedule", self.schedule,
          "fixed coefficient, or adapted towards ppo.kl_target (Ziegler et al. 2019)");
    field("kl_target", self.target, above_0, "adaptive: target KL in nats per sample");
    field("kl_horizon", self.horizon, above_0,
          "adaptive: samples over which a 20 % error changes the coefficient by 20 %");
  }
  /// Returns coef * (1 + clip(kl / target - 1, -0.2, 0.2) * samples / horizon), the coefficient
  /// after a rollout step of `samples` samples with a mean KL of `kl`.
  double next(double coef, double kl, double samples) const;
};

/// fixed: the coefficient stays. adaptive (Skywork-OR1, arXiv:2505.22312, MAGIC): a step up while
/// the entropy is below its target, a step down while it is above, and no bonus at all while it is
/// above.
enum class EntropySchedule { fixed, adaptive };
constexpr std::array<std::string_view, 2> names_of(EntropySchedule) {
  return {"fixed", "adaptive"};
}

struct EntropyControl {
  EntropySchedule schedule = EntropySchedule::fixed;
  double target = 0.2;      ///< nats per token
  double delta = 0.005;     ///< change per update
  double min = 0, max = 1;  ///< bounds of the coefficient

  static void each_field(auto& self, auto&& field) {
    field("entropy_schedule", self.schedule,
          "fixed coefficient, or adaptive (Skywork-OR1): increased after an update with entropy "
          "below grpo.entropy_target, decreased and not applied after one above it");
    field("entropy_target", self.target, at_least_0, "adaptive: target entropy in nats per token");
    field("entropy_delta", self.delta, above_0, "adaptive: change of the coefficient per update");
    field("entropy_coef_min", self.min, Range{-10, 10}, "adaptive: minimum coefficient");
    field("entropy_coef_max", self.max, Range{-10, 10}, "adaptive: maximum coefficient");
  }
  bool adaptive() const { return schedule == EntropySchedule::adaptive; }
  /// Returns the coefficient after an update with the mean entropy `entropy`.
  double next(double coef, double entropy) const;
  /// Returns the coefficient of the next update's bonus: `coef`, or 0 above the target.
  double bonus(double coef, double entropy) const {
    return adaptive() && entropy > target ? 0 : coef;
  }
};

}  // namespace troupe::algorithms
