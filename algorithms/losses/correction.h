// Corrections for samples that other weights drew than those that the update starts from:
// importance weights, filters, and the proximal policy of decoupled PPO. Constants of the loss, all
// of them: no gradient flows through a correction.
//
// Three policies take part: pi (trained now), the proximal one (Experience::old_logp: the ratio's
// denominator) and the behaviour (Experience::rollout_logp: what sampled). With w = proximal /
// behaviour the loss is w times the clipped surrogate around the proximal policy: decoupled PPO
// (Hilton et al. 2022, arXiv:2110.00641; AReaL, arXiv:2505.24298).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/fields.h"
#include "engine/data/experience.h"
#include "engine/loss/report.h"
#include "engine/loss/tape.h"

namespace troupe::algorithms {

/// Over which tokens the ratio w is taken: each one's own, the product over the sample, or its
/// geometric mean.
enum class Over { none, token, sequence, geometric };
constexpr std::array<std::string_view, 4> names_of(Over) {
  return {"none", "token", "sequence", "geometric"};
}

/// What a filter looks at, x = log w of a token: k1 the ratio itself, within two bounds; k2 = x^2 /
/// 2 and k3 = e^x - 1 - x distances, at most the upper bound (verl's rollout_rs). Over which
/// tokens: a ratio as above; a distance by each token, summed over the sample, its mean, or its
/// greatest.
enum class FilterBy { k1, k2, k3 };
constexpr std::array<std::string_view, 3> names_of(FilterBy) {
  return {"k1", "k2", "k3"};
}
enum class FilterOver { none, token, sequence, geometric, greatest };
constexpr std::array<std::string_view, 5> names_of(FilterOver) {
  return {"none", "token", "sequence", "geometric", "greatest"};
}

/// What becomes of a weight out of its bounds: cut to the bound (TIS), 0 (IcePop, TRL's *_mask), or
/// nothing.
enum class Outside { truncate, mask, keep };
constexpr std::array<std::string_view, 3> names_of(Outside) {
  return {"truncate", "mask", "keep"};
}

/// The tools' names:
///   TRL token_truncate, token_mask: token + truncate, mask; sequence_truncate, sequence_mask (its
///   default, high 3): sequence + ... verl rollout_is token, sequence, threshold 2: token or
///   sequence + truncate, high 2;  "lo_hi": token + mask verl rollout_rs seq_mean_k1: filter
///   geometric;  seq_sum_k1: filter sequence;  token_k2, seq_sum_k2, seq_mean_k2, seq_max_k2:
///   filter token, sequence, geometric, greatest with filter_by k2;  k3 the same OpenRLHF tis:
///   token + truncate [0.5, 5];  icepop: token + mask;  seq-mask-tis: token + keep, filter
///   geometric
struct Correction {
  Over weight = Over::none;
  Outside outside = Outside::truncate;
  double low = 0, high = 3;              ///< bounds of the weight; high 0: none
  FilterOver filter = FilterOver::none;  ///< samples (token: tokens) that do not pass are left out
                                         ///< of the policy's loss
  FilterBy filter_by = FilterBy::k1;
  /// A ratio passes within the two, a distance up to filter_high.
  double filter_low = 0.5, filter_high = 5;

  static void each_field(auto& self, auto&& field) {
    field("correction", self.weight,
          "importance weight of the policy over the rollout policy: per token, per sample (the "
          "product), or its geometric mean");
    field("correction_outside", self.outside,
          "weights outside their bounds are truncated to the bound, set to 0, or kept");
    field("correction_low", self.low, at_least_0, "lower bound of the importance weight");
    field("correction_high", self.high, at_least_0,
          "upper bound of the importance weight; 0: none");
    field("filter", self.filter,
          "drop samples whose ratio to the rollout policy is out of bounds: its product over the "
          "sample or its geometric mean; for a distance, its sum, mean or maximum over the sample, "
          "or each token by itself");
    field("filter_by", self.filter_by,
          "what the filter tests: the ratio (k1), half the squared log-ratio (k2), or ratio - 1 - "
          "log-ratio (k3)");
    field("filter_low", self.filter_low, at_least_0, "lower bound of the ratio");
    field("filter_high", self.filter_high, above_0, "upper bound of the ratio or distance");
  }
  Result<> validate(std::string_view section) const;
  bool any() const { return weight != Over::none || filter != FilterOver::none; }
  /// [T] w of each token, 0 where the sample or the token is left out; 1 where not trained on. log
  /// w is held within +-20. Metrics: sampling/sampling_logp_difference/{mean,max},
  /// sampling/importance_sampling_ratio/{min,mean,max}, sampling/is_oob_ratio (weights out of
  /// bounds), with a filter sampling/filtered_ratio (what it left out): means over trained tokens.
  std::vector<double> operator()(const std::vector<double>& proximal,
                                 const std::vector<float>& behaviour,
                                 const engine::data::Experience& b,
                                 engine::loss::Report& report) const;

 private:
  /// [T] whether the filter lets the token pass. `difference` [T]: log w of each token, 0 where not
  /// trained on.
  std::vector<char> passes(const std::vector<double>& difference,
                           const engine::data::Experience& b) const;
};

/// Off-policy sequence mask (DeepSeek-V3.2; TRL's off_policy_mask_threshold): [T] 0 at the samples
/// with a negative advantage whose mean log(behaviour / pi) is above `threshold`, else 1. logp [T]:
/// of pi.
std::vector<double> off_policy_mask(const std::vector<double>& logp,
                                    const std::vector<float>& behaviour,
                                    const engine::data::Experience& b, double threshold);

/// Where the log-probabilities of the proximal policy come from: old_logp as given, or guessed from
/// the weights' versions without a forward pass (AReaL's prox_logp_method): log-linear or linear
/// between behaviour and pi.
enum class Proximal { given, loglinear, linear };
constexpr std::array<std::string_view, 3> names_of(Proximal) {
  return {"given", "loglinear", "linear"};
}

/// How far the proximal policy is on the way from the behaviour to pi: clip((now - 1 - behaviour) /
/// (now - behaviour), 0, 1), versions counting updates; 0 where the sample is of this version.
double proximal_share(std::int64_t now, std::int64_t behaviour);
/// log((1 - share) behaviour + share pi) when linear, else (1 - share) log behaviour + share log
/// pi.
double proximal_logp(Proximal how, double behaviour, double logp, double share);

}  // namespace troupe::algorithms
