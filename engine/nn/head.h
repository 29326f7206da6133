// Head: the language head: hidden states to the log-probability of a token, over a vocabulary that
// the ranks of a tensor-parallel group may share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/sets/id_sets.h"
#include "engine/collectives/tensor_group.h"
#include "engine/nn/lora.h"
#include "engine/nn/parameters.h"

namespace troupe::engine::nn {

/// Scores of one target token per row, [M] each, under the softmax over the whole vocabulary.
/// Both entropies may be absent.
struct TokenScores {
  Tensor logp, lse, entropy;
  Tensor whole_entropy;  ///< over the whole vocabulary, with HeadTargets::whole_entropy
  Tensor saved_logits;   ///< for the backward pass, where there were few (ops::Device::head)
};

/// Tokens of which the scores are computed, one per row.
struct HeadTargets {
  std::span<const std::int32_t> ids;  ///< [M] of the whole vocabulary, or ops::no_target
  float inv_temperature = 1;
  ops::Precision precision = ops::Precision::f32;
  /// [M] tokens over which the softmax, the entropy and their gradients are taken, the target among
  /// them. nullptr, or no set at all: the whole vocabulary.
  const IdSets* masks = nullptr;
  bool whole_entropy = false;  ///< also the entropy over the whole vocabulary; no gradient
};

/// Trainer, scorer and generator all compute their log-probabilities here, so that equal weights in
/// equal parts give all three equal bits. With a group, every method is collective.
struct Head {
  ops::Device* device = nullptr;
  Parameter* weight = nullptr;             ///< [V/tp, D] this rank's rows of the logical weight
  collectives::TensorGroup* tp = nullptr;  ///< ranks that share the vocabulary; nullptr: one rank
  Lora lora = {};                          ///< without dropout and magnitudes
  /// Logits are cap(logit_scale * weight.hidden), as in ops::HeadScale.
  float logit_scale = 1, softcap = 0;
  bool normalized = false;  ///< NormHead: the weight's rows are divided by their norms
  /// [V/tp], added to weight.hidden, or nullptr: computed as an adapter of rank 1 whose input is 1.
  /// Without `lora`.
  Parameter* bias = nullptr;

  /// The matrix of the logits, [V/tp, D]: the weight, or its normalized rows.
  Tensor matrix() const;

  /// hidden [M, D] -> scores of the targets under softmax(logits * inv_temperature). `keep`:
  /// backward() follows.
  TokenScores forward(const Tensor& hidden, const HeadTargets& targets, bool with_entropy,
                      bool keep = false) const;
  /// dlogp, dentropy [M] (dentropy may be absent) -> dhidden [M, D]; adds into the weight's
  /// gradient. `scores`: the result of forward.
  Tensor backward(const Tensor& hidden, const HeadTargets& targets, const TokenScores& scores,
                  const Tensor& dlogp, const Tensor& dentropy) const;

  struct ForwardBackward {
    TokenScores scores;
    Tensor dhidden;
  };
  /// forward() and backward() in one pass over the logits, with equal bits, for gradients that are
  /// known before the forward pass.
  ForwardBackward forward_backward(const Tensor& hidden, const HeadTargets& targets,
                                   const Tensor& dlogp, const Tensor& dentropy,
                                   bool with_entropy) const;

  /// [M] log of the sum of p^2 over the vocabulary (the negated collision entropy). `scores`: the
  /// result of forward for the same arguments. No gradient.
  std::vector<float> collision(const Tensor& hidden, const HeadTargets& targets,
                               const TokenScores& scores) const;

  /// This rank's part of the logits, scaled and capped, [M, V/tp]: the argument of scores().
  /// `packed` and `lora_rows` as in ForwardContext.
  Tensor logits(const Tensor& hidden, ops::Precision precision, bool packed = false,
                const LoraRows* lora_rows = nullptr) const;
  /// Logits of the whole vocabulary, [M, V], on the host of every rank.
  std::vector<float> gather_logits(const Tensor& logits) const;
  /// The bits of forward(), without entropy, from logits(), which have the targets' precision.
  TokenScores scores(const Tensor& logits, const HeadTargets& targets) const;

 private:
  ops::HeadScale scale_at(float inv_temperature) const {
    return {inv_temperature, logit_scale, softcap};
  }
  Tensor down_project(const Tensor& hidden, ops::Precision precision) const;
  bool has_adapter() const { return lora || bias != nullptr; }
  /// The operands of the adapter's product: [M, R], and [V/tp, R] of its second matrix.
  Tensor adapter_input(const Tensor& hidden, ops::Precision precision) const;
  Tensor adapter_matrix() const;
  /// The adapter's inputs, and memory for their gradients; absent where there is no adapter.
  /// `dbias` [V/tp]: where the gradient of the bias is added, or absent.
  ops::HeadAdapter adapter_inputs(const Tensor& hidden, ops::Precision precision,
                                  const Tensor& dbias) const;
  void adapter_backward(const Tensor& hidden, ops::HeadAdapter& adapter, ops::Precision precision,
                        Tensor& dhidden) const;
  TokenScores allocate(std::size_t rows, bool with_entropy, bool whole_entropy = false) const;
  /// Replaces the scores of each rank's part of the vocabulary by those of the whole. `whole_lse`:
  /// beside scores.whole_entropy, or absent.
  void combine(std::span<const std::int32_t> own, TokenScores& scores, Tensor whole_lse) const;
};

/// ScoreHead: hidden states to a few numbers each: a critic's value, a reward, the classes of a
/// process reward.
///
/// Replicated on every rank of a tensor-parallel group. The product is always in f32: its cost is
/// negligible.
struct ScoreHead {
  ops::Device* device = nullptr;
  Parameter* weight = nullptr;  ///< [C, D]
  Parameter* bias = nullptr;    ///< [C], or nullptr

  std::int64_t labels() const { return weight->value.shape()[0]; }
  /// hidden [M, D] -> scores [M, C].
  Tensor forward(const Tensor& hidden) const;
  /// dscores [M, C] -> dhidden [M, D]; adds into the gradients. `hidden`: the argument of forward.
  Tensor backward(const Tensor& hidden, const Tensor& dscores) const;
};

}  // namespace troupe::engine::nn
