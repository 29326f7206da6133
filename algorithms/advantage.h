// Advantages: how much better each sample was than its group. Pure functions over host arrays, in float64.
//
// Samples of one prompt stand next to each other, `group` of them. A reward that is not a number (a failed reward) takes no part in any
// mean or deviation and gives advantage 0: it is counted, never mistaken for a low score.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace troupe::algorithms {

/// What the distance to the group's mean is divided by: the group's standard deviation (GRPO, arXiv:2402.03300), that of the whole
/// batch (arXiv:2508.08221), or nothing (Dr. GRPO, arXiv:2503.20783).
enum class GroupScale { group, batch, none };
constexpr std::array<std::string_view, 3> names_of(GroupScale) { return {"group", "batch", "none"}; }

struct Advantages {
  std::vector<double> values;      ///< [N]
  std::int64_t failed = 0;         ///< rewards that were not numbers
  std::int64_t groups = 0;         ///< groups with a reward
  std::int64_t flat = 0;           ///< of these, groups whose rewards are all the same: they teach nothing
  double mean = 0, deviation = 0;  ///< of the rewards of the whole batch (deviation with n - 1; 0 for fewer than two)
  /// The mean over groups of their own deviation (TRL's reward_std).
  double group_deviation = 0;
};

/// A = (R - mean) / (std + eps), std with n - 1; a group of one has std 0. eps: TRL 1e-4, verl 1e-6, OpenRLHF 1e-9; unused with none.
/// A group of equal rewards gives exactly 0. Bug when N is not a multiple of `group`.
Advantages group_advantages(std::span<const double> rewards, int group, GroupScale scale = GroupScale::group, double eps = 1e-4);

/// REINFORCE leave-one-out (Ahmadian et al. 2024, arXiv:2402.14740): A = R - the mean of the group's others; 0 without others.
Advantages leave_one_out(std::span<const double> rewards, int group);

/// [N] -> [T]: each token of sequence n gets values[n]; offsets [N+1].
std::vector<float> per_token(std::span<const double> values, const std::vector<std::int32_t>& offsets);

}  // namespace troupe::algorithms
