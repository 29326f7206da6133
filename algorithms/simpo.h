// SimPO (Meng et al. 2024, arXiv:2405.14734): pairs without a reference.
#pragma once

#include "algorithms/losses/simpo_loss.h"
#include "algorithms/preference.h"

namespace troupe::algorithms {

struct SimpoConfig {
  static constexpr std::string_view name = "simpo";
  static constexpr std::string_view summary =
      "SimPO: prefer the chosen answer by its mean log-probability, without a reference "
      "(AlphaPO with simpo.alpha)";
  using Losses = LossList<SimpoLoss>;
  using Row = engine::data::PairExample;

  SimpoLoss loss;

  static void each_field(auto& self, auto&& field) { SimpoLoss::each_field(self.loss, field); }
  void validate(SettingsReport& v) const;
  std::string formula() const;
  PairTraining training() const;
};

}  // namespace troupe::algorithms
