// Preference optimization: the loop of all methods on pairs of answers. DPO, SimPO, CPO and ORPO
// differ in their loss and its inputs.
#pragma once

#include "algorithms/losses/pairs.h"
#include "algorithms/method.h"
#include "algorithms/training/weight_sync.h"

namespace troupe::algorithms {

struct PairTraining {
  engine::loss::LossSpec loss;
  engine::loss::LossSpec held_out_loss;  ///< of held-out pairs; reads log-probabilities only
  bool reference = false;                ///< the losses read c.reference
  /// Score every pair once before the first step, then release the reference.
  bool precompute_reference = false;
  ReferenceSync following;  ///< of the reference; needs c.synced_reference
  /// The mask includes the prompts of chosen sequences; Experience::answer marks the answers.
  bool nll_on_prompt = false;
};

/// A batch of pairs with the counts that the losses need: pairs and chosen tokens (set_nll_tokens).
engine::data::Experience pair_batch(const engine::data::Batch<engine::data::PairExample>& pairs,
                                    bool nll_on_prompt);

/// Runs the steps: log-probabilities of the reference, an update, an evaluation on the held-out
/// pairs if due, an update of the reference if due.
Task<void> train_on_pairs(Cluster& c, engine::data::Loader<engine::data::PairExample>& data,
                          TrainingPlan plan, PairTraining training, HeldOut held_out);

/// The functions of a method (method.h) whose settings state the shared loop's.
template <class M>
concept PairMethod = requires(const M& method) {
  { method.training() } -> std::same_as<PairTraining>;
};

template <PairMethod M>
engine::data::Experience batch_of(const M& method,
                                  const engine::data::Batch<engine::data::PairExample>& pairs) {
  return pair_batch(pairs, method.training().nll_on_prompt);
}

template <PairMethod M>
Task<void> train(Cluster& c, engine::data::Loader<engine::data::PairExample>& data,
                 TrainingPlan plan, const M& method, HeldOut held_out) {
  return train_on_pairs(c, data, std::move(plan), method.training(), std::move(held_out));
}

}  // namespace troupe::algorithms
