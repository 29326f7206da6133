// Kahneman-Tversky optimization (Ethayarajh et al. 2024, arXiv:2402.01306): answers that are good
// or bad, without pairs.
#pragma once

#include "algorithms/losses/kto_loss.h"
#include "algorithms/method.h"
#include "algorithms/weight_sync.h"

namespace troupe::algorithms {

struct KtoConfig {
  static constexpr std::string_view name = "kto";
  using Losses = LossList<KtoLoss>;

  KtoLoss loss;
  std::int64_t max_length = 0;   ///< tokens of a sequence, a mismatched one too; 0: no limit
  ReferenceSync following = {};  ///< of the reference
  std::string reference = {};    ///< model directory, for whoever loads the reference

  static void each_field(auto& self, auto&& field) {
    KtoLoss::each_field(self.loss, field);
    field("reference", self.reference, reference_doc);
    ReferenceSync::each_field(self.following, field);
  }
};

/// Held-out batches, each with the mismatched one of the same prompts.
struct HeldOutAnswers {
  HeldOut matched;
  std::vector<engine::data::Experience> mismatched;  ///< as many
};

/// Needs c.reference; c.synced_reference where the reference follows. The KL term is measured on
/// the whole batch before its update.
Task<void> kto(Cluster& c, engine::data::Loader<engine::data::UnpairedExample>& data, Plan plan,
               KtoConfig config, HeldOutAnswers held_out = HeldOutAnswers());

}  // namespace troupe::algorithms
