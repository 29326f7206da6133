// Kahneman-Tversky optimization (Ethayarajh et al. 2024, arXiv:2402.01306, eq. 7): answers labelled
// good or bad, without pairs.
//
//   u = log pi(y|x) / pi_ref(y|x)
//   z = max(0, mean of u over mismatched prompts and answers), a constant of the batch
//
//                       desirable                             undesirable
//   kto                 w_d (1 - sigmoid(beta (u - z)))       w_u (1 - sigmoid(beta (z - u)))
//   apo_zero_unpaired   w_d (1 - sigmoid(beta u))             w_u sigmoid(beta u)
//
// apo_zero_unpaired: arXiv:2408.06266.
#pragma once

#include <array>

#include "engine/loss/loss.h"

namespace troupe::algorithms {

using engine::loss::spec_of;

enum class KtoLossKind { kto, apo_zero_unpaired };
constexpr std::array<std::string_view, 2> names_of(KtoLossKind) {
  return {"kto", "apo_zero_unpaired"};
}

/// count: sequences of the global batch; label: 1 desirable, 0 undesirable; scale: z, which
/// algorithms/kto.cpp computes on the whole batch before the update. Needs reference_logp. Metrics:
/// rewards/chosen (beta u, mean over desirable answers), rewards/rejected, logps/chosen,
/// logps/rejected, kl (z), entropy.
struct KtoLoss {
  static constexpr std::string_view name = "kto";
  KtoLossKind kind = KtoLossKind::kto;
  double beta = 0.1;
  double desirable_weight = 1, undesirable_weight = 1;  ///< w_d, w_u

  static void each_field(auto& self, auto&& field) {
    field("loss", self.kind, "loss of an answer; apo_zero_unpaired has no KL term");
    field("beta", self.beta, above_0, "strength of the implicit KL penalty");
    field("desirable_weight", self.desirable_weight, above_0, "loss weight of desirable answers");
    field("undesirable_weight", self.undesirable_weight, above_0,
          "loss weight of undesirable answers");
  }
  engine::loss::Needs needs() const { return {.entropy = true, .reference = true}; }
  engine::loss::Expr operator()(const engine::loss::TokenStats& now,
                                const engine::data::Experience& b,
                                engine::loss::Report& report) const;
};

/// z: the mean of log pi / pi_ref over the mismatched sequences of `b`, at least 0; 0 without
/// sequences. Inputs [T].
double mismatched_kl(const engine::data::Experience& b, const std::vector<float>& logp,
                     const std::vector<float>& reference_logp);

}  // namespace troupe::algorithms
