// Head: from hidden states to the log-probability of a token, over a vocabulary that the ranks of a
// tensor-parallel group may share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/nn/lora.h"
#include "engine/nn/parameters.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::nn {

/// What a model says of one token a row, [M] each, over the whole vocabulary. `entropy` may be
/// absent.
struct TokenScores {
  Tensor logp, lse, entropy;
  Tensor kept;  ///< logits for the way back, where they were few (ops::Device::head)
};

/// Trainer, scorer and generator all get their numbers here, so that equal weights in equal parts
/// give equal bits to all three. Targets are ids of the whole vocabulary, or ops::no_target. With a
/// group every method is collective over it.
struct Head {
  ops::Device* device = nullptr;
  Parameter* weight = nullptr;  ///< [V/tp, D] this rank's rows of the logical weight
  parallel::Communicator* tp =
      nullptr;     ///< the ranks that share the vocabulary; nullptr: this one has all of it
  Lora lora = {};  ///< without dropout and magnitudes
  float logit_scale = 1,
        softcap = 0;  ///< logits are cap(logit_scale * weight.hidden), as ops::HeadScale has it

  /// hidden [M, D] -> scores of the targets under softmax(logits * inv_temperature).
  /// `keep`: backward() follows.
  TokenScores forward(const Tensor& hidden, std::span<const std::int32_t> targets,
                      float inv_temperature, ops::Precision precision, bool with_entropy,
                      bool keep = false) const;
  /// dlogp, dentropy [M] (dentropy may be absent) -> dhidden [M, D]; adds into the weight's
  /// gradient. `scores` as forward gave them.
  Tensor backward(const Tensor& hidden, std::span<const std::int32_t> targets,
                  float inv_temperature, ops::Precision precision, const TokenScores& scores,
                  const Tensor& dlogp, const Tensor& dentropy) const;

  /// forward() and backward() at once, with their bits, where the derivatives are known beforehand.
  struct Through {
    TokenScores scores;
    Tensor dhidden;
  };
  Through through(const Tensor& hidden, std::span<const std::int32_t> targets,
                  float inv_temperature, ops::Precision precision, const Tensor& dlogp,
                  const Tensor& dentropy, bool with_entropy) const;

  /// [M] log of the sum over the whole vocabulary of p^2, where `scores` are forward's for the same
  /// arguments: how sure a model is of what it says, as log p is for the token that it said. No
  /// gradient.
  std::vector<float> collision(const Tensor& hidden, std::span<const std::int32_t> targets,
                               float inv_temperature, ops::Precision precision,
                               const TokenScores& scores) const;

  /// This rank's part of the logits, scaled and capped, [M, V/tp]: what scores() takes. `packed` as
  /// in Pass.
  Tensor logits(const Tensor& hidden, ops::Precision precision, bool packed = false) const;
  /// All parts together, [M, V] on the host of every rank.
  std::vector<float> whole(const Tensor& logits) const;
  /// The bits of forward(), without entropy, from kept logits.
  TokenScores scores(const Tensor& logits, std::span<const std::int32_t> targets,
                     float inv_temperature) const;

 private:
  ops::HeadScale scaled(float inv_temperature) const {
    return {inv_temperature, logit_scale, softcap};
  }
  Tensor down(const Tensor& hidden, ops::Precision precision) const;
  /// Its inputs, and room for their gradients; absent where there is no adapter.
  ops::HeadAdapter adapter_for(const Tensor& hidden, ops::Precision precision) const;
  void below_adapter(const Tensor& hidden, ops::HeadAdapter& adapter, ops::Precision precision,
                     Tensor& dhidden) const;
  TokenScores room_for(std::size_t rows, bool with_entropy) const;
  void combine(std::span<const std::int32_t> own, TokenScores& scores) const;
};

}  // namespace troupe::engine::nn
