// Decoder: a decoder-only transformer from a DecoderSpec. One forward for training, scoring and generation; explicit backward.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/models/spec.h"
#include "engine/nn/pass.h"
#include "engine/nn/saved.h"

namespace troupe::engine::models {

class Decoder {
 public:
  /// Allocates the parameters; values are undefined until a checkpoint is loaded (checkpoint/hf_model.h) or copied in.
  Decoder(ops::Device& device, DecoderSpec spec, bool with_gradients);
  ~Decoder();
  Decoder(Decoder&&) noexcept;

  const DecoderSpec& spec() const;
  nn::Parameters& parameters();
  const nn::Parameters& parameters() const;
  ops::Device& device() const;

  /// Hidden states [T, D] after the final norm. With pass.cache, keys and values of the T rows are written to the cache first,
  /// and row t attends to cached positions 0 .. layout.positions[t].
  Tensor forward(std::span<const std::int32_t> tokens, const nn::Pass& pass, nn::Saved& saved);
  /// Adds into every gradient; pops what forward pushed. `dhidden` as forward's result.
  void backward(std::span<const std::int32_t> tokens, const Tensor& dhidden, const nn::Pass& pass, nn::Saved& saved);

  /// The head's weight [V, D] (the embedding when tied) and its gradient.
  nn::Parameter& head();
  /// Logits [M, V] of the given hidden rows [M, D].
  Tensor logits(const Tensor& hidden, ops::Precision precision);

  /// An empty cache of `pages` pages for this model.
  nn::KvCache make_cache(std::int32_t pages, int page_size = 16) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace troupe::engine::models
