// The value loss of a critic: squared (or Huber) error of the returns, clipped to stay near the
// values before the update (Schulman et al.'s PPO code; Huang et al. 2024, arXiv:2403.17031
// detail 9).
//
//   l_t = 1/2 max((V - R)^2, (clip(V, V_old - clip, V_old + clip) - R)^2)
//   L   = coef * sum of l_t over the trained tokens / count
#pragma once

#include "engine/loss/loss.h"

namespace troupe::algorithms {

using engine::loss::spec_of;

/// Reads value (V_old), returns, and the score head's only label before each token (V). count:
/// trained tokens of the update. Metrics, means over trained tokens: loss/value_avg (before coef),
/// val/clipfrac_avg, critic/vpred_mean.
struct ValueLoss {
  static constexpr std::string_view name = "value";

  /// Clipping range; 0: no clipping. TRL and MindSpeed-LLM 0.2; verl, OpenRLHF and MindSpeed-RL
  /// 0.5.
  double clip = 0.2;
  /// Threshold of the Huber loss (AReaL: 10); 0: squared error everywhere.
  double huber = 0;
  /// Loss coefficient; affects AdamW only through its epsilon and the clipping of gradients. TRL
  /// 0.1.
  double coef = 1;
  static void each_field(auto& self, auto&& field) {
    field("value_clip", self.clip, at_least_0,
          "clip new values to this distance from the old ones; 0: no clipping");
    field("huber", self.huber, at_least_0,
          "Huber loss with this threshold (AReaL: 10); 0: squared error");
    field("loss_coef", self.coef, above_0,
          "value loss coefficient (TRL: 0.1); with AdamW it matters only through max_grad_norm and "
          "eps");
  }
  engine::loss::Needs needs() const {
    return {.logp = false, .scores = true, .scores_at = engine::loss::ReadAt::before};
  }
  engine::loss::Expr operator()(const engine::loss::TokenStats& now,
                                const engine::data::Experience& b,
                                engine::loss::Report& report) const;
};

}  // namespace troupe::algorithms
