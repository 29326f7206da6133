// Advantages: how much better each sample was than its group. Pure functions over host arrays, in
// float64.
//
// Samples of one prompt stand next to each other, `group` of them. A reward that is not a number (a
// failed reward) takes no part in any mean or deviation and gives advantage 0: it is counted, never
// mistaken for a low score.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace troupe::algorithms {

/// What the distance to the group's mean is divided by: the group's standard deviation (GRPO,
/// arXiv:2402.03300), that of the whole batch (arXiv:2508.08221), or nothing (Dr. GRPO,
/// arXiv:2503.20783).
enum class GroupScale { group, batch, none };
constexpr std::array<std::string_view, 3> names_of(GroupScale) {
  return {"group", "batch", "none"};
}

struct Advantages {
  std::vector<double> values;  ///< [N]
  std::int64_t failed = 0;     ///< rewards that were not numbers
  std::int64_t groups = 0;     ///< groups with a reward
  std::int64_t flat = 0;  ///< of these, groups whose rewards are all the same: they teach nothing
  double mean = 0,
         deviation =
             0;  ///< of the rewards of the whole batch (deviation with n - 1; 0 for fewer than two)
  /// The mean over groups of their own deviation (TRL's reward_std).
  double group_deviation = 0;
};

/// A = (R - mean) / (std + eps), std with n - 1; a group of one has std 0. eps: TRL 1e-4, verl
/// 1e-6, OpenRLHF 1e-9; unused with none. A group of equal rewards gives exactly 0. Bug when N is
/// not a multiple of `group`.
Advantages group_advantages(std::span<const double> rewards, int group,
                            GroupScale scale = GroupScale::group, double eps = 1e-4);

/// REINFORCE leave-one-out (Ahmadian et al. 2024, arXiv:2402.14740): A = R - the mean of the
/// group's others; 0 without others.
Advantages leave_one_out(std::span<const double> rewards, int group);

/// As leave_one_out, and divided by the deviation (n - 1) of the group's others plus eps; not
/// divided where that is 0, as where a sole winner leaves equal rewards behind (NeMo-RL's default).
/// A group of two has no such deviation.
Advantages leave_one_out_scaled(std::span<const double> rewards, int group, double eps = 1e-6);

/// Only the best sample of a group counts, by how far it is ahead of the second: A = (first -
/// second) / (std + eps), 0 for the others (verl's grpo_passk, arXiv:2503.19595). Of several best
/// ones none is ahead.
Advantages pass_at_k(std::span<const double> rewards, int group, double eps = 1e-6);

/// OPO (arXiv:2505.23585): A = R - sum of length * R / sum of length over the group. lengths [N],
/// in trained tokens.
Advantages length_weighted_baseline(std::span<const double> rewards,
                                    std::span<const double> lengths, int group);

/// GPG (arXiv:2504.02546) as verl has it: A = alpha (R - mean), alpha = samples / samples whose
/// reward is not 0.
Advantages group_policy_gradient(std::span<const double> rewards, int group);

/// MaxRL as prime-rl has it: A = (R - mean) / mean; 0 where the mean is 0. Rewards are at least 0.
Advantages relative_to_mean(std::span<const double> rewards, int group);

/// ReMax (arXiv:2310.10505): A = R - the reward of the greedy answer to the same prompt,
/// `baselines` [N / group]. Where that one failed, 0.
Advantages against_baseline(std::span<const double> rewards, std::span<const double> baselines,
                            int group);

/// GDPO (arXiv:2601.05242; TRL's normalize_then_sum): every reward part is scaled within its group,
/// then the weighted sum within the batch. parts [K][N], weights [K]; `rewards` [N] are what the
/// statistics tell of.
Advantages normalise_then_sum(std::span<const double> rewards,
                              const std::vector<std::vector<double>>& parts,
                              std::span<const double> weights, int group, double eps = 1e-4);

/// (x - mean) / (std + eps) over the whole batch, std with n - 1 (TRL's RLOO with
/// normalize_advantages). What is not a number stays 0.
std::vector<double> normalised_over_batch(std::span<const double> x, double eps);

/// sum over k >= 0 of gamma^k r_(t+k) over the trained tokens of one sequence; tokens that are not
/// trained on are stepped over. [L]
std::vector<double> returns_to_go(std::span<const double> rewards, std::span<const float> mask,
                                  double gamma);

/// [N] -> [T]: each token of sequence n gets values[n]; offsets [N+1].
std::vector<float> per_token(std::span<const double> values,
                             const std::vector<std::int32_t>& offsets);

}  // namespace troupe::algorithms
