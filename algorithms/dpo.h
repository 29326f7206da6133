// Direct preference optimization (Rafailov et al. 2023, arXiv:2305.18290) and the methods that
// differ from it in their loss alone.
#pragma once

#include "algorithms/losses/dpo_loss.h"
#include "algorithms/preference.h"

namespace troupe::algorithms {

struct DpoConfig {
  static constexpr std::string_view name = "dpo";
  static constexpr std::string_view summary =
      "direct preference optimization: prefer the chosen answer of each pair to the rejected one";
  using Losses = LossList<DpoLoss>;
  using Row = engine::data::PairExample;

  DpoLoss loss;
  /// Score every pair once before the first step, then release the reference.
  bool precompute_reference = false;
  ReferenceSync following = {};  ///< of the reference (TR-DPO); not with precompute_reference
  std::string reference = {};    ///< model directory

  static void each_field(auto& self, auto&& field) {
    DpoLoss::each_field(self.loss, field);
    field("reference", self.reference, reference_doc);
    field("precompute_reference", self.precompute_reference,
          "compute the reference log-probabilities of all pairs before the first step, then free "
          "the reference model");
    ReferenceSync::each_field(self.following, field);
  }
  void validate(SettingsReport& v) const;
  std::string formula() const;
  /// Held-out pairs are not weighted: WPO's weights correct for training on data that the policy
  /// did not write.
  PairTraining training() const;
};

}  // namespace troupe::algorithms
