// Routing of tokens to the experts of a mixture (Shazeer et al. 2017, arXiv:1701.06538): a router
// as data, the routes that it gives, and the operands of the operations on them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/ops/types.h"
#include "engine/tensor/tensor.h"

namespace troupe::engine::ops {

/// Score of an expert, from the logits of a token: softmax over all experts; the logistic function
/// of its own logit (DeepSeek-V3); or the two picks of PhiMoE (Liu et al. 2024, arXiv:2409.12136),
/// each a softmax over the logits within a relative distance of 2 * jitter of the largest one that
/// is left, without noise.
enum class RouterScore : std::uint8_t { softmax, sigmoid, sparse_mixer };
/// Score of a group of experts: its largest choice value (DeepSeek-V2) or the sum of its two
/// largest (DeepSeek-V3).
enum class GroupScore : std::uint8_t { largest, two_largest };
/// Divisor of the scores s of the chosen experts: none; sum(s) + epsilon; max(sum(s), epsilon).
enum class Renormalize : std::uint8_t { no, sum, bounded_sum };

/// How the experts of a token are chosen and weighted. The choice value of an expert is its score,
/// in f32, plus its bias; those outside the best groups are replaced. The largest choice values are
/// chosen, the lower index first among equal ones, and the weight of a chosen expert is its score
/// without the bias, renormalized and scaled.
struct Router {
  std::int64_t experts = 1;  ///< E
  std::int64_t chosen = 1;   ///< k, experts of a token
  RouterScore score = RouterScore::softmax;
  /// The logit is the choice value: softmax after the choice, which with Renormalize::sum is the
  /// softmax over the chosen logits.
  bool chooses_logits = false;
  std::int64_t groups = 1, kept_groups = 1;  ///< consecutive experts; those that may be chosen
  GroupScore group_score = GroupScore::two_largest;
  float group_mask = 0;  ///< choice value of the experts of other groups: 0 or minus infinity
  Renormalize renormalize = Renormalize::no;
  double epsilon = 0, scale = 1;
  double jitter = 0;  ///< of RouterScore::sparse_mixer
};

/// Routes of T tokens to E experts, M = T k rows in all. The experts of a token are in ascending
/// order. The rows are sorted by expert, and the rows of an expert by token. A choice that
/// Device::drop_choices() dropped has no row: the last rows, as many, belong to no expert.
struct Routes {
  Tensor weights;  ///< [T, k] f32
  Tensor experts;  ///< [T, k] i32
  Tensor places;   ///< [T, k] i32, the row of each choice; -1: dropped
  Tensor tokens;   ///< [M] i32, the token of each row
  Tensor offsets;  ///< [E + 1] i32: the rows of expert e are offsets[e] .. offsets[e + 1]
};

/// Which choices of an expert with too many are kept: those of largest weight, or of the first
/// tokens; the earlier token among equal ones.
enum class DropPolicy : std::uint8_t { weight, position };
constexpr std::array<std::string_view, 2> names_of(DropPolicy) {
  return {"weight", "position"};
}

/// Sums over tokens that tell how evenly a router uses its experts. The share of an expert in a
/// token is its softmax score, or its logistic score divided by the sum of the token's scores. The
/// favourites of a token are the k experts of largest logits, without bias and groups (DeepSeek-AI
/// 2024, arXiv:2412.19437, eq. 18).
struct RouterSums {
  std::vector<std::int64_t> routed;      ///< [E] choices
  std::vector<std::int64_t> favourites;  ///< [E]
  std::vector<double> shares;            ///< [E]
  double squares = 0;                    ///< of the logsumexp of the logits
  std::int64_t tokens = 0, dropped = 0;
};

/// Gradient of a loss by the sums of some segments of rows.
struct RouterSlopes {
  std::span<const std::int32_t>
      offsets;                     ///< [N + 1] segment n is rows offsets[n] .. offsets[n + 1]
  std::span<const double> shares;  ///< [N, E]
  double squares = 0;
};

/// Operands of the sum of the experts' outputs.
struct Combination {
  const Routes& routes;
  const Tensor& outputs;      ///< [M, D]
  const Tensor* shared = {};  ///< [T, D] output of the shared expert, or nullptr
  const Tensor* gate = {};    ///< [T, 1] logit of its weight, sigmoid(gate); nullptr: weight 1
};

/// Gradients of the operands of a combination, assigned.
struct CombinationGradients {
  Tensor& outputs;      ///< [M, D]
  Tensor& weights;      ///< [T, k]
  Tensor* shared = {};  ///< [T, D], with a gate
  Tensor* gate = {};    ///< [T, 1], with a gate
};

/// Gradients of the experts' weights by a ragged product. An expert without rows adds nothing.
struct RaggedGradients {
  std::span<Tensor> sums;             ///< [E] of [F, D]
  std::span<const bool> accumulates;  ///< [E] false: assigned
};

}  // namespace troupe::engine::ops
