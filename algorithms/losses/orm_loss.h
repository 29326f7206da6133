// Outcome reward models: the preferred answer gets the higher score (Bradley and Terry 1952; Ouyang
// et al. 2022, arXiv:2203.02155, eq. 1). The score s of a sequence is the score head's output at
// its last token. Sequence 2k is y_w (chosen), sequence 2k+1 is y_l (rejected).
//
//   bradley_terry   L = - log sigmoid(s_w - s_l - margin) + center (s_w + s_l)^2
//   log_exp         L = log(1 + e^(s_l - s_w)) + center (s_w + s_l)^2
//
// Margins: Llama 2, arXiv:2307.09288, eq. 2. log_exp: OpenRLHF's LogExpLoss, without margins.
#pragma once

#include <array>

#include "engine/loss/loss.h"

namespace troupe::algorithms {

using engine::loss::spec_of;

enum class OrmLossKind { bradley_terry, log_exp };
constexpr std::array<std::string_view, 2> names_of(OrmLossKind) {
  return {"bradley_terry", "log_exp"};
}

/// count: pairs of the global batch. Reads a score wherever the mask is not 0
/// (data::to_scored_pairs: at each last token) and, for bradley_terry, Experience::label of the
/// sequences 2k as margins (0 without the column). Metrics with TRL's names: accuracy (s_w > s_l)
/// and margin (s_w - s_l), means over pairs; min_reward, mean_reward, max_reward over sequences.
struct OrmLoss {
  static constexpr std::string_view name = "orm";
  OrmLossKind kind = OrmLossKind::bradley_terry;
  /// Regularizes each pair's scores towards a sum of 0 (Eisenstein et al. 2023, arXiv:2312.09244);
  /// TRL suggests 0.01.
  double center = 0;

  static void each_field(auto& self, auto&& field) {
    field("loss", self.kind,
          "bradley_terry: - log sigmoid(s_w - s_l - margin), margin from the data if it has one "
          "(TRL, OpenRLHF, MindSpeed); log_exp: log(1 + exp(s_l - s_w)), without margins "
          "(OpenRLHF)");
    field("center_rewards_coefficient", self.center, at_least_0,
          "weight of (s_w + s_l)^2, which centers scores around 0; 0.01 is common, 0: none");
  }
  engine::loss::Needs needs() const {
    return {.logp = false, .scores = true, .scores_at = engine::loss::ReadAt::token};
  }
  engine::loss::Expr operator()(const engine::loss::TokenStats& now,
                                const engine::data::Experience& b,
                                engine::loss::Report& report) const;
};

}  // namespace troupe::algorithms
