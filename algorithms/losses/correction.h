// Off-policy corrections: importance weights, filters, and the proximal policy of decoupled PPO.
// All are constants of the loss; no gradient flows through them.
//
// Three policies are distinguished: pi (being trained), the proximal policy (Experience::old_logp,
// the denominator of the ratio) and the behaviour policy (Experience::rollout_logp, which sampled).
// With w = proximal / behaviour the loss is w times the clipped surrogate around the proximal
// policy: decoupled PPO (Hilton et al. 2022, arXiv:2110.00641; AReaL, arXiv:2505.24298).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/json/fields.h"
#include "engine/data/experience.h"
#include "engine/loss/report.h"
#include "engine/loss/tape.h"

namespace troupe::algorithms {

/// The tokens over which the ratio w is taken: each token alone, the product over the sample, or
/// the geometric mean over the sample.
enum class Over { none, token, sequence, geometric };
constexpr std::array<std::string_view, 4> names_of(Over) {
  return {"none", "token", "sequence", "geometric"};
}

/// The quantity that a filter bounds, with x = log w of a token: the ratio itself (k1) between two
/// bounds; the distances k2 = x^2 / 2 and k3 = e^x - 1 - x below the upper bound (verl's
/// rollout_rs). A ratio is taken over tokens as above; a distance per token, or its sum, mean or
/// maximum over the sample.
enum class FilterBy { k1, k2, k3 };
constexpr std::array<std::string_view, 3> names_of(FilterBy) {
  return {"k1", "k2", "k3"};
}
enum class FilterOver { none, token, sequence, geometric, greatest };
constexpr std::array<std::string_view, 5> names_of(FilterOver) {
  return {"none", "token", "sequence", "geometric", "greatest"};
}

/// The treatment of a weight outside its bounds: truncated to the bound (TIS), set to 0 (IcePop,
/// TRL's *_mask), or kept.
enum class Outside { truncate, mask, keep };
constexpr std::array<std::string_view, 3> names_of(Outside) {
  return {"truncate", "mask", "keep"};
}

/// Names in other tools:
///   TRL       token_truncate, token_mask: token with truncate, mask; sequence_truncate,
///             sequence_mask (its default, high 3): sequence with truncate, mask
///   verl      rollout_is token, sequence, threshold 2: token, sequence with truncate, high 2;
///             "lo_hi": token with mask
///             rollout_rs seq_mean_k1: filter geometric; seq_sum_k1: filter sequence; token_k2,
///             seq_sum_k2, seq_mean_k2, seq_max_k2: filter token, sequence, geometric, greatest
///             with filter_by k2; k3 likewise
///   OpenRLHF  tis: token with truncate [0.5, 5]; icepop: token with mask; seq-mask-tis: token with
///             keep, filter geometric
struct Correction {
  Over weight = Over::none;
  Outside outside = Outside::truncate;
  double low = 0, high = 3;  ///< bounds of the weight; high 0: none
  /// Samples (token: tokens) that do not pass are excluded from the policy's loss.
  FilterOver filter = FilterOver::none;
  FilterBy filter_by = FilterBy::k1;
  /// A ratio passes between the two bounds, a distance below filter_high.
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
  /// [T] w of each token; 0 where the sample or the token is rejected, 1 where not trained on. log
  /// w is clamped to +-20. Metrics, means over trained tokens:
  /// sampling/sampling_logp_difference/{mean,max},
  /// sampling/importance_sampling_ratio/{min,mean,max}, sampling/is_oob_ratio (weights out of
  /// bounds), with a filter sampling/filtered_ratio.
  std::vector<double> operator()(const std::vector<double>& proximal,
                                 const std::vector<float>& behaviour,
                                 const engine::data::Experience& b,
                                 engine::loss::Report& report) const;

 private:
  /// [T] whether the filter accepts the token. `difference` [T]: log w of each token, 0 where not
  /// trained on.
  std::vector<char> passes(const std::vector<double>& difference,
                           const engine::data::Experience& b) const;
};

/// Off-policy sequence mask (DeepSeek-V3.2; TRL's off_policy_mask_threshold): [T] 0 for samples
/// with a negative advantage whose mean log(behaviour / pi) exceeds `threshold`, otherwise 1. logp
/// [T]: log-probabilities under pi.
std::vector<double> off_policy_mask(const std::vector<double>& logp,
                                    const std::vector<float>& behaviour,
                                    const engine::data::Experience& b, double threshold);

/// The source of the proximal policy's log-probabilities: old_logp as given, or an interpolation
/// between behaviour and pi by the weights' versions without a forward pass (AReaL's
/// prox_logp_method), log-linear or linear.
enum class Proximal { given, loglinear, linear };
constexpr std::array<std::string_view, 3> names_of(Proximal) {
  return {"given", "loglinear", "linear"};
}

/// The position of the proximal policy between the behaviour (0) and pi (1):
/// clip((now - 1 - behaviour) / (now - behaviour), 0, 1), where versions count updates; 0 where the
/// sample is of the current version.
double proximal_share(std::int64_t now, std::int64_t behaviour);
/// log((1 - share) behaviour + share pi) if linear, otherwise
/// (1 - share) log behaviour + share log pi.
double proximal_logp(Proximal how, double behaviour, double logp, double share);
/// [T] of the proximal policy between rollout_logp (old_logp where it is absent) and `logp`, by the
/// versions of the batch and `version`, that of pi; 0 where the mask is 0. `how` is not `given`.
std::vector<double> proximal_logps(Proximal how, std::int64_t version, std::vector<double> logp,
                                   const engine::data::Experience& b);
constexpr const char* proximal_doc =
    "decoupled PPO: denominator of the ratio: the given old log-probabilities (the rollouts', or "
    "recomputed), or an interpolation between rollout and policy by weight version (AReaL)";

}  // namespace troupe::algorithms
