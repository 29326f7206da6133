// Dynamic sampling (DAPO, arXiv:2503.14476 sec. 3.2): groups with equal rewards have no gradient,
// so further prompts are sampled in their place until the batch is full.
#pragma once

#include <optional>
#include <span>

#include "algorithms/grpo.h"
#include "algorithms/rollout/sampling.h"

namespace troupe::algorithms {

/// True when the rewards of a group differ and their mean lies strictly within the bounds. Failed
/// rewards are ignored.
bool has_reward_differences(std::span<const protocol::RewardResult> group,
                            const DynamicSampling& options);

/// Appends the groups of `more` with reward differences to `batch`, up to `wanted` groups. Without
/// dynamic sampling, appends all groups.
void append_groups(RolloutBatch& batch, RolloutBatch more, const GrpoConfig& config,
                   std::size_t wanted);

/// The samples of the next rollout step: one batch of prompts and, with dynamic sampling, as many
/// more as are needed, at most max_refills. A batch that stays short is used, with a warning. A
/// batch without any group throws Failure (Errc::bad_input), or, once the run `has_trained`, ends
/// it with a warning: a policy that answers everything correctly has no such groups. nullopt at
/// that end and when the prompts are used up.
Task<std::optional<RolloutBatch>> next_batch(Sampling from,
                                             engine::data::Loader<engine::data::PromptRow>& data,
                                             const GrpoConfig& config, bool has_trained);

}  // namespace troupe::algorithms
