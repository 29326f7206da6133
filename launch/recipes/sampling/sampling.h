// What every recipe that draws samples shares: its keys, its checks, its settings.
#pragma once

#include <span>
#include <string>

#include "engine/generate/sampling_params.h"
#include "launch/config/fields.h"
#include "launch/recipes/judging.h"

namespace troupe::launch {

std::span<const Field> rollout_fields();
std::span<const Field> reward_fields();

void judge_rollout(Judging& j);
/// A reward is needed, its rules must be known and complete.
void judge_reward(Judging& j);

/// Rollouts read other weights than the policy's, so that it is to say itself how likely a sample
/// was.
bool draws_in_8_bits(const RunConfig& config);

engine::generate::SamplingParams sampling_settings(const RunConfig& config);
/// The reward as the list that actors::rules::Rules reads.
Json reward_rules(const RunConfig& config);
/// "R = 1 exact_match + 0.5 format"
std::string reward_formula(const RunConfig& config);

}  // namespace troupe::launch
