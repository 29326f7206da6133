// KlControl: how strongly a round's samples are held to the reference.
#pragma once

#include <array>
#include <string_view>

namespace troupe::algorithms {

/// fixed: the coefficient stays. adaptive (Ziegler et al. 2019, arXiv:1909.08593 sec. 2.2): it
/// grows while the KL is above its target and shrinks while it is below.
enum class KlSchedule { fixed, adaptive };
constexpr std::array<std::string_view, 2> names_of(KlSchedule) {
  return {"fixed", "adaptive"};
}

struct KlControl {
  KlSchedule schedule = KlSchedule::fixed;
  double target = 6;  ///< nats per sequence
  double horizon =
      10000;  ///< samples over which a KL of 1.2 times the target moves the coefficient by 20 %

  /// coef * (1 + clip(kl / target - 1, -0.2, 0.2) * samples / horizon): after a round of `samples`
  /// whose KL was `kl`.
  double next(double coef, double kl, double samples) const;
};

}  // namespace troupe::algorithms
