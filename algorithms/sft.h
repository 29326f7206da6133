// Supervised fine-tuning: the mean negative log-likelihood of the tokens that the data's masks
// name.
#pragma once

#include "algorithms/losses/sft_loss.h"
#include "algorithms/method.h"

namespace troupe::algorithms {

struct SftConfig {
  static constexpr std::string_view name = "sft";
  static constexpr std::string_view summary =
      "supervised fine-tuning: learn to write the answers of the data";
  using Losses = LossList<SftLoss>;
  using Row = engine::data::SftExample;

  SftLoss loss;
  bool mask_prompt = true;

  static void each_field(auto& self, auto&& field) {
    SftLoss::each_field(self.loss, field);
    field("mask_prompt", self.mask_prompt,
          "train on the assistant's tokens only; false: on all tokens");
  }
  std::string formula() const;
};

engine::data::Experience batch_of(const SftConfig& settings,
                                  const engine::data::Batch<engine::data::SftExample>& rows);

/// The loss and metrics of `held_out` are recorded as eval/... when an evaluation is due.
Task<void> train(Cluster& c, engine::data::Loader<engine::data::SftExample>& data,
                 TrainingPlan plan, const SftConfig& settings, HeldOut held_out);

}  // namespace troupe::algorithms
