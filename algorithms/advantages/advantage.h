// Advantages: how much better each sample was than its group. Pure functions over host arrays, in
// float64.
//
// Samples of one prompt are adjacent, `group` of them. A NaN reward (a failed one) is excluded from
// every mean and standard deviation and gets advantage 0: it is counted, never mistaken for a low
// score.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace troupe::algorithms {

/// Divisor of the difference from the group's mean: the group's standard deviation (GRPO,
/// arXiv:2402.03300), that of the whole batch (arXiv:2508.08221), or none (Dr. GRPO,
/// arXiv:2503.20783).
enum class GroupScale { group, batch, none };
constexpr std::array<std::string_view, 3> names_of(GroupScale) {
  return {"group", "batch", "none"};
}

struct Advantages {
  std::vector<double> values;  ///< [N]
  std::int64_t failed = 0;     ///< NaN rewards
  std::int64_t groups = 0;     ///< groups with a reward
  /// Groups with a reward whose rewards are all equal: they have no gradient.
  std::int64_t flat = 0;
  /// Moments of the rewards of the whole batch; the standard deviation with n - 1, 0 for fewer than
  /// two.
  double mean = 0, std_dev = 0;
  /// Mean over groups of their standard deviations (TRL's reward_std).
  double group_std_dev = 0;
};

/// A = (R - mean) / (std + eps), std with n - 1; a group of one has std 0. eps: TRL 1e-4, verl
/// 1e-6, OpenRLHF 1e-9; unused with none. A group of equal rewards gives exactly 0. Bug when N is
/// not a multiple of `group`.
Advantages group_advantages(std::span<const double> rewards, int group,
                            GroupScale scale = GroupScale::group, double eps = 1e-4);

/// REINFORCE leave-one-out (Ahmadian et al. 2024, arXiv:2402.14740): A = R - the mean of the
/// group's others; 0 without others.
Advantages leave_one_out(std::span<const double> rewards, int group);

/// leave_one_out() divided by the standard deviation (n - 1) of the group's others plus eps; not
/// divided where that is 0, as for a sole winner among equal rewards (NeMo-RL's default). A group
/// of two has no such standard deviation.
Advantages leave_one_out_scaled(std::span<const double> rewards, int group, double eps = 1e-6);

/// Only the best sample of a group gets an advantage: A = (first - second) / (std + eps), 0 for the
/// others (verl's grpo_passk, arXiv:2503.19595), and 0 if several are best.
Advantages pass_at_k(std::span<const double> rewards, int group, double eps = 1e-6);

/// OPO (arXiv:2505.23585): A = R - sum of length * R / sum of length over the group. lengths [N],
/// in trained tokens.
Advantages length_weighted_baseline(std::span<const double> rewards,
                                    std::span<const double> lengths, int group);

/// GPG (arXiv:2504.02546) in verl's form: A = alpha (R - mean), alpha = samples / samples whose
/// reward is not 0.
Advantages group_policy_gradient(std::span<const double> rewards, int group);

/// MaxRL in prime-rl's form: A = (R - mean) / mean; 0 where the mean is 0. Rewards are at least 0.
Advantages relative_to_mean(std::span<const double> rewards, int group);

/// ReMax (arXiv:2310.10505): A = R - the reward of the greedy answer to the same prompt,
/// `baselines` [N / group]; 0 where the greedy answer's reward failed.
Advantages against_baseline(std::span<const double> rewards, std::span<const double> baselines,
                            int group);

/// GDPO (arXiv:2601.05242; TRL's normalize_then_sum): each reward part is scaled within its group,
/// then the weighted sum within the batch. parts [K][N], weights [K]; the statistics are those of
/// `rewards` [N].
Advantages normalise_then_sum(std::span<const double> rewards,
                              const std::vector<std::vector<double>>& parts,
                              std::span<const double> weights, int group, double eps = 1e-4);

/// (x - mean) / (std + eps) over the whole batch, std with n - 1 (TRL's RLOO with
/// normalize_advantages). NaN becomes 0.
std::vector<double> normalised_over_batch(std::span<const double> x, double eps);

/// sum over k >= 0 of gamma^k r_(t+k) over the trained tokens of one sequence; untrained tokens are
/// skipped. [L]
std::vector<double> returns_to_go(std::span<const double> rewards, std::span<const float> mask,
                                  double gamma);

/// [N] -> [T]: each token of sequence n gets values[n]; offsets [N+1].
std::vector<float> per_token(std::span<const double> values,
                             const std::vector<std::int32_t>& offsets);

}  // namespace troupe::algorithms
