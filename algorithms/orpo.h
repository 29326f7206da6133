// Odds ratio preference optimization (Hong et al. 2024, arXiv:2403.07691): pairs without a
// reference.
#pragma once

#include "algorithms/losses/orpo_loss.h"
#include "algorithms/preference.h"

namespace troupe::algorithms {

struct OrpoConfig {
  static constexpr std::string_view name = "orpo";
  static constexpr std::string_view summary =
      "odds ratio preference optimization: fine-tune on the chosen answers and raise their "
      "odds, without a reference";
  using Losses = LossList<OrpoLoss>;
  using Row = engine::data::PairExample;

  OrpoLoss loss;
  bool nll_on_prompt = true;

  static void each_field(auto& self, auto&& field) {
    OrpoLoss::each_field(self.loss, field);
    field("nll_on_prompt", self.nll_on_prompt,
          "average the negative log-likelihood over prompt and chosen answer (TRL); false: over "
          "the answer");
  }
  std::string formula() const;
  PairTraining training() const;
};

}  // namespace troupe::algorithms
