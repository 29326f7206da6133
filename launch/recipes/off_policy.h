// The settings by which a method corrects samples of other weights: grpo.* and ppo.*
// recompute_old_logp, correction*, filter*, proximal.
#pragma once

#include <string>
#include <string_view>

#include "algorithms/losses/correction.h"
#include "launch/recipes/validate.h"

namespace troupe::launch::recipes {

/// Where the old log-probabilities of a method come from.
struct OldLogp {
  bool recomputed = false;    ///< by the policy; otherwise they are those of the rollouts
  bool set = false;           ///< by recompute_old_logp
  bool approximated = false;  ///< between rollout and policy (proximal)
};

/// Reports settings of `section` that have no effect or contradict each other.
void validate_correction(Validation& v, std::string_view section,
                         const algorithms::Correction& correction, const OldLogp& old);

/// Reports that `proximal` of a section approximates what is recomputed, or has no effect.
/// `trained_once`: a batch has one update.
void validate_proximal(Validation& v, std::string_view section, const OldLogp& old,
                       bool trained_once, bool corrects);

/// The factors of the loss: "w " or nothing; what the filter requires, in brackets, or nothing.
std::string weight_factor(const algorithms::Correction& correction);
std::string filter_factor(const algorithms::Correction& correction);
/// The line that defines w, or nothing.
std::string weight_definition(const algorithms::Correction& correction);

}  // namespace troupe::launch::recipes
