// The reward models of a run, made from its configuration.
#pragma once

#include "actors/roles/reward.h"
#include "launch/run/roles.h"

namespace troupe::launch {

/// The models of `reward`, read with `parts.text`, which must have the policy's vocabulary: their
/// scores are read at the policy's own tokens. Throws Failure.
actors::roles::RewardModels make_reward(const RoleParts& parts);

/// Errc::usage where two folders' tokenizers do not have the same tokens under the same ids;
/// folders without a tokenizer are taken at their word.
Result<> same_vocabulary(const std::string& policy, const std::string& model);

}  // namespace troupe::launch
