// Group Relative Policy Optimization (Shao et al. 2024, arXiv:2402.03300, sec. 4.1), with the later ways to clip and to average.
//
//   rho   = pi / pi_old
//   l_t   = - min(rho A, clip(rho, 1 - clip_low, 1 + clip_high) A) + beta KL_t - entropy_coef H_t
//   L     = the average of l_t over the trained tokens, as `aggregation` says
#pragma once

#include <array>

#include "algorithms/losses/kl.h"
#include "engine/loss/loss.h"

namespace troupe::algorithms {

using engine::loss::spec_of;

/// Reads old_logp, advantage, and reference_logp when beta is not 0. Without old_logp the ratio is exactly 1 and its gradient that
/// of log pi: the first update after sampling.
/// Metrics, means over trained tokens: kl (as it stands in the loss), entropy, clip_ratio/{low,high,region}_mean,
/// ratio/{mean,min,max}.
struct GrpoLoss {
  static constexpr std::string_view name = "grpo";

  /// How tokens are averaged, and what Experience::count and ::scale of an update must then be (L divides by count * scale):
  ///   sequence      the mean over sequences of each one's token mean           count = sequences of the update
  ///   token_local   the mean over the update's tokens                          count = trained tokens of the update
  ///   token_global  their sum over the tokens of the whole sampled batch       count = trained tokens of all samples that were drawn
  ///                 (DAPO, arXiv:2503.14476)                                   together (TRL: num_items_in_batch)
  ///   constant      their sum over a length that is the same for all           count = sequences of the update,
  ///                 (Dr. GRPO, arXiv:2503.20783)                               scale = the longest completion allowed
  /// A sequence without a trained token counts as a sequence of loss 0, as in TRL.
  enum class Aggregation { sequence, token_local, token_global, constant };
  friend constexpr std::array<std::string_view, 4> names_of(Aggregation) { return {"grpo", "bnpo", "dapo", "dr_grpo"}; }

  Aggregation aggregation = Aggregation::token_global;
  double clip_low = 0.2, clip_high = 0.2;  ///< unequal: DAPO's clip-higher
  double delta = 0;                        ///< upper bound of the unclipped ratio too (INTELLECT-2, arXiv:2505.07291); 0: none
  bool sequence_ratio = false;             ///< rho = exp(mean over the sequence of log rho_t): GSPO, arXiv:2507.18071
  double beta = 0;
  KlEstimator kl = KlEstimator::k3;
  bool kl_times_ratio =
      true;  ///< KL_t multiplied by rho_t, differentiably (TRL's use_bias_correction_kl; DeepSeek-V3.2); false: the paper's
  double entropy_coef = 0;
  double temperature = 1;  ///< of sampling: log-probabilities are those of the distribution that was sampled from
  bool report_entropy = true;

  static void each_field(auto& self, auto&& field) {
    field("aggregation", self.aggregation), field("clip_low", self.clip_low), field("clip_high", self.clip_high);
    field("delta", self.delta), field("sequence_ratio", self.sequence_ratio), field("beta", self.beta), field("kl", self.kl);
    field("kl_times_ratio", self.kl_times_ratio), field("entropy_coef", self.entropy_coef);
    field("temperature", self.temperature), field("report_entropy", self.report_entropy);
  }
  engine::loss::Needs needs() const {
    return {.entropy = report_entropy || entropy_coef != 0, .reference = beta != 0, .temperature = temperature};
  }
  Result<> validate() const;
  engine::loss::Expr operator()(const engine::loss::TokenStats& now, const engine::data::Experience& b, engine::loss::Report& report) const;
};

/// Sets count and scale of an update to what `aggregation` divides by. `sampled_tokens`: the trained tokens of all samples drawn together;
/// `longest`: the longest completion allowed. An update that trains nothing gets count 1, so that its loss is 0.
void set_constants(engine::data::Experience& update, GrpoLoss::Aggregation aggregation, double sampled_tokens, double longest);

}  // namespace troupe::algorithms
