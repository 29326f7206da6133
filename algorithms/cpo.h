// Contrastive preference optimization (Xu et al. 2024, arXiv:2401.08417): pairs without a
// reference.
#pragma once

#include "algorithms/losses/cpo_loss.h"
#include "algorithms/preference.h"

namespace troupe::algorithms {

struct CpoConfig {
  static constexpr std::string_view name = "cpo";
  static constexpr std::string_view summary =
      "contrastive preference optimization: prefer the chosen answer and keep it likely, "
      "without a reference";
  using Losses = LossList<CpoLoss>;
  using Row = engine::data::PairExample;

  CpoLoss loss;

  static void each_field(auto& self, auto&& field) { CpoLoss::each_field(self.loss, field); }
  void validate(SettingsReport& v) const;
  std::string formula() const;
  PairTraining training() const;
};

}  // namespace troupe::algorithms
