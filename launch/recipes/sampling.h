// Settings shared by the recipes that sample: the checks of `rollout` and `reward`.
#pragma once

#include <functional>
#include <string>

#include "actors/roles/rules/rule.h"
#include "engine/data/layouts/encode.h"
#include "engine/generate/sampling_params.h"
#include "launch/recipes/validate.h"

namespace troupe::launch::recipes {

void validate_rollout(Validation& v);
/// The section `async`; `samples_per_row`: samples of a batch for each row of train.batch_size.
void validate_async(Validation& v, std::int64_t samples_per_row);
/// The section `weights`.
void validate_weights(Validation& v);
/// The section `serve`, and rollout.source.
void validate_serve(Validation& v);
/// A reward is required; its rules must be known and complete. With rollout.source service there is
/// none: other programs send the rewards.
void validate_reward(Validation& v);

/// True if rollouts use other weights than the policy's.
bool samples_in_int8(const config::RunConfig& config);
/// The length at which the model's rotary frequencies change (LongRoPE, dynamic NTK), if sequences
/// of the run may be longer; 0: they do not change.
std::int64_t rotary_switch_within(const config::RunConfig& config);
/// True if the log-probabilities of sampling are not those of the policy, which recomputes them:
/// the rollouts have other weights, or a sample may begin with other rotary frequencies than those
/// of its whole length.
bool samples_have_other_logp(const config::RunConfig& config);

/// Whether the trainer takes log-probabilities over the tokens that were left to sample from.
bool replays_sampling_mask(const config::RunConfig& config);
/// The maximum bytes of the sampling masks of one token, and of those of a batch. 0 where the
/// model's vocabulary is not known.
struct MaskBytes {
  std::int64_t token = 0;
  double batch = 0;
};
MaskBytes max_mask_bytes(const config::RunConfig& config);
/// The maximum bytes of the sampling masks of one sample of another program: its share of
/// rollout.mask_bytes, at least 1; 0 where the run takes none.
std::int64_t max_sent_mask_bytes(const config::RunConfig& config);

/// Samples of a step that the journal receives: all with rollout.record all, else `shown`.
int recorded_samples(const config::RunConfig& config, int shown);
/// rollout.parity_sample, with what its use needs.
void set_parity_sample(const config::RunConfig& config, algorithms::RolloutOptions& options);
engine::generate::SamplingParams sampling_settings(const config::RunConfig& config);
/// The reward as the list that actors::rules::Rules reads.
Json reward_rules(const config::RunConfig& config);
/// True for a rule whose rewards a program of the user computes, with parts of its own.
bool is_program(const config::RewardRule& rule);
/// What these rules need of the samples.
actors::rules::RuleInputs reward_inputs(const config::RunConfig& config);
/// Checks that the rules of `reward` can score completions of a prompt row: Errc::bad_input if a
/// rule needs an answer that the row does not have.
std::function<Result<>(const engine::data::PromptRow&)> prompt_check(
    const config::RunConfig& config);
/// "log p(t), p_ref, H: over the tokens left to sample from (...)" with replays_sampling_mask(),
/// else
/// "".
std::string mask_formula(const config::RunConfig& config);
/// "R = 1 exact_match + 0.5 format"
std::string reward_formula(const config::RunConfig& config);

}  // namespace troupe::launch::recipes
