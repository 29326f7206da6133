// Dynamic sampling (DAPO, arXiv:2503.14476 sec. 3.2): groups whose rewards are all the same teach
// nothing, so further prompts are drawn in their place until the round is full.
#pragma once

#include <limits>
#include <string>

#include "algorithms/grpo.h"

namespace troupe::algorithms {

/// A round's prompts, and their samples and verdicts, which are still to be settled
/// (grpo_minibatches.h).
struct Gathered {
  PromptBatch prompts;
  Sampled sampled;
  std::int64_t groups_drawn = 0, refills = 0, rewards = 0;
  double reward_sum = 0;  ///< over the `rewards` samples that were judged, kept or not
};

/// Whether the rewards of a group (verdicts [group]) differ and their mean lies strictly within the
/// bounds. Failed ones take no part.
bool worth_keeping(std::span<const protocol::RewardResult> group, const DynamicSampling& rule);

/// Appends to `into` the groups of `more` (samples of `prompts`, in their order) that are worth
/// keeping, until it holds `wanted` of them. Without dynamic sampling, all of them.
void keep(Gathered& into, const PromptBatch& prompts, Sampled more, const GrpoConfig& config,
          std::size_t wanted);

/// The next round: one batch of the loader, and with dynamic sampling as many more as are needed,
/// at most max_refills. Fewer groups than wanted are warned of and used. None at all is a Failure
/// (Errc::bad_input), or, in a run that `learned` before, its end: a policy that answers everything
/// right has no such groups any more. nullopt at that end, and when the loader has no prompts left.
Task<std::optional<Gathered>> gather(Cluster& c,
                                     engine::data::Loader<engine::data::PromptRow>& data,
                                     const GrpoConfig& config, bool learned);

}  // namespace troupe::algorithms
