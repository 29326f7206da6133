// Kahneman-Tversky optimization (Ethayarajh et al. 2024, arXiv:2402.01306): answers that are good
// or bad, without pairs.
#pragma once

#include "algorithms/losses/kto_loss.h"
#include "algorithms/method.h"
#include "algorithms/training/weight_sync.h"

namespace troupe::algorithms {

struct KtoConfig {
  static constexpr std::string_view name = "kto";
  using Losses = LossList<KtoLoss>;

  KtoLoss loss;
  /// Maximum tokens of a sequence, also of a mismatched one; 0: no limit.
  std::int64_t max_length = 0;
  ReferenceSync following = {};  ///< of the reference
  std::string reference = {};    ///< directory of the reference model

  static void each_field(auto& self, auto&& field) {
    KtoLoss::each_field(self.loss, field);
    field("reference", self.reference, reference_doc);
    ReferenceSync::each_field(self.following, field);
  }
};

/// Held-out batches, each with its mismatched batch of the same prompts.
struct HeldOutAnswers {
  HeldOut matched;
  std::vector<engine::data::Experience> mismatched;  ///< one per batch
};

/// Needs c.reference, and c.synced_reference if the reference follows the policy. The KL term is
/// estimated on the whole batch before its update.
Task<void> kto(Cluster& c, engine::data::Loader<engine::data::UnpairedExample>& data,
               TrainingPlan plan, KtoConfig config, HeldOutAnswers held_out = HeldOutAnswers());

}  // namespace troupe::algorithms
