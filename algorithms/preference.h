// The loop that every algorithm over pairs of answers shares (preference.cpp): DPO, SimPO, CPO and
// ORPO differ in their loss, and in what it needs.
#pragma once

#include "algorithms/held_out.h"
#include "algorithms/losses/cpo_loss.h"
#include "algorithms/losses/dpo_loss.h"
#include "algorithms/losses/orpo_loss.h"
#include "algorithms/losses/simpo_loss.h"
#include "algorithms/plan.h"
#include "algorithms/weight_sync.h"
#include "engine/data/loader/loader.h"

namespace troupe::algorithms {

struct PairTraining {
  engine::loss::LossSpec loss;
  engine::loss::LossSpec held_out_loss;  ///< of held-out pairs; it reads log-probabilities only
  bool reference = false;                ///< the losses compare with c.reference
  bool precompute_reference =
      false;  ///< score every pair once before the first step, then let the reference go
  ReferenceSync following;  ///< of the reference; needs c.synced_reference
  bool nll_on_prompt =
      false;  ///< the mask names the chosen sequences' prompts too, Experience::answer the answers
};

/// A batch of pairs as the losses want it: pairs counted, chosen tokens counted (set_nll_tokens).
engine::data::Experience pair_batch(const engine::data::Batch<engine::data::PairExample>& pairs,
                                    bool nll_on_prompt);

/// All examples, in their order, in batches of `size`.
template <class T>
std::vector<engine::data::Batch<T>> in_batches(const std::vector<T>& examples, std::int64_t size) {
  std::vector<engine::data::Batch<T>> out;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    if (i % static_cast<std::size_t>(size) == 0) out.emplace_back();
    out.back().examples.push_back(&examples[i]);
    out.back().ids.push_back(i);
  }
  return out;
}

/// Each step: the reference's log-probabilities, an update, a look at the held-out pairs where one
/// is due, a move of the reference.
Task<void> train_on_pairs(Cluster& c, engine::data::Loader<engine::data::PairExample>& data,
                          Plan plan, PairTraining training, HeldOut held_out);

// Direct preference optimization (Rafailov et al. 2023, arXiv:2305.18290) and its relatives: the
// loss alone differs (preference.h).
struct DpoConfig {
  DpoLoss loss;
  bool precompute_reference =
      false;  ///< score every pair once before the first step, then let the reference go
  ReferenceSync following = {};  ///< of the reference (TR-DPO); not with precompute_reference
  std::string reference = {};    ///< model directory, for whoever loads the reference

  static void each_field(auto& self, auto&& field) {
    DpoLoss::each_field(self.loss, field);
    field("reference", self.reference, reference_doc);
    field("precompute_reference", self.precompute_reference,
          "compute the reference log-probabilities of all pairs before the first step, then free "
          "the reference model");
    ReferenceSync::each_field(self.following, field);
  }
};

/// Needs c.reference; c.synced_reference where the reference follows. Held-out pairs are not
/// weighted: WPO's weights are about training on data that the policy did not write.
Task<void> dpo(Cluster& c, engine::data::Loader<engine::data::PairExample>& data, Plan plan,
               DpoConfig config, HeldOut held_out = HeldOut());

// SimPO (Meng et al. 2024, arXiv:2405.14734): pairs without a reference (preference.h).
Task<void> simpo(Cluster& c, engine::data::Loader<engine::data::PairExample>& data, Plan plan,
                 SimpoLoss loss, HeldOut held_out = HeldOut());

// Contrastive preference optimization (Xu et al. 2024, arXiv:2401.08417): pairs without a reference
// (preference.h).
Task<void> cpo(Cluster& c, engine::data::Loader<engine::data::PairExample>& data, Plan plan,
               CpoLoss loss, HeldOut held_out = HeldOut());

// Odds ratio preference optimization (Hong et al. 2024, arXiv:2403.07691): pairs without a
// reference (preference.h).
struct OrpoConfig {
  OrpoLoss loss;
  bool nll_on_prompt = true;

  static void each_field(auto& self, auto&& field) {
    OrpoLoss::each_field(self.loss, field);
    field("nll_on_prompt", self.nll_on_prompt,
          "average the negative log-likelihood over prompt and chosen answer (TRL); false: over "
          "the answer");
  }
};

Task<void> orpo(Cluster& c, engine::data::Loader<engine::data::PairExample>& data, Plan plan,
                OrpoConfig config, HeldOut held_out = HeldOut());

}  // namespace troupe::algorithms
