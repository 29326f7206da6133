// Decoder: a decoder-only transformer from a DecoderSpec. One forward for training, scoring and
// generation; explicit backward.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/models/spec.h"
#include "engine/nn/forward_context.h"
#include "engine/nn/head.h"
#include "engine/nn/saved.h"
#include "engine/nn/score_head.h"

namespace troupe::engine::models {

class Decoder {
 public:
  /// Allocates the parameters; values are undefined until a checkpoint is loaded
  /// (checkpoint/load_parameters.h) or copied in. The ranks of `tp` share the model (split.h): each
  /// has its part of the parameters, all call forward and backward with the same tokens and get the
  /// same hidden states; `tp` outlives this. nullptr, or a group of one: all of it is here.
  /// Failure(usage) where the model cannot be split so.
  Decoder(ops::Device& device, DecoderSpec spec, bool with_gradients,
          parallel::Communicator* tp = nullptr);
  ~Decoder();
  Decoder(Decoder&&) noexcept;

  /// Of the whole model.
  const DecoderSpec& spec() const;
  /// nullptr when the whole model is here.
  parallel::Communicator* tp() const;
  /// Whether the model answers with its adapter, as it does at first, or as its base alone does.
  void use_adapter(bool on);
  nn::Parameters& parameters();
  const nn::Parameters& parameters() const;
  ops::Device& device() const;

  /// Hidden states [T, D] after the final norm. With pass.cache, keys and values of the T rows are
  /// written to the cache first, and row t attends to cached positions 0 .. layout.positions[t].
  Tensor forward(std::span<const std::int32_t> tokens, const nn::Pass& pass, nn::Saved& saved);
  /// Adds into every gradient; pops what forward pushed. `dhidden` as forward's result.
  void backward(std::span<const std::int32_t> tokens, const Tensor& dhidden, const nn::Pass& pass,
                nn::Saved& saved);

  /// The matrices that forward() and a language head multiply by, adapters aside.
  std::vector<nn::Parameter*> weights();
  /// Log-probabilities from hidden states. Its weight is the embedding when tied. Of a language
  /// model only: spec().labels is 0.
  const nn::Head& head() const;
  /// Scores from hidden states. Only where spec().labels is more than 0.
  const nn::ScoreHead& score() const;

  /// An empty cache of `pages` pages for this rank's part of the model.
  nn::KvCache make_cache(std::int32_t pages, int page_size = 16) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// What generation makes of the weights. In 8 bits a token has a probability near that of the
/// weights as they are, not the same.
enum class WeightsRead : std::uint8_t { as_they_are, int8 };

/// Where products are in bf16, or weights are read in 8 bits: for as long as this lives the weights
/// of a model are there once more, as those products want them (ops::Device::pack): a half or a
/// quarter of the bytes, which generation reads. Elsewhere it does nothing.
class PackedWeights {
 public:
  PackedWeights(Decoder& model, ops::Precision precision,
                WeightsRead read = WeightsRead::as_they_are)
      : model_(precision == ops::Precision::bf16 || read == WeightsRead::int8 ? &model : nullptr),
        type_(read == WeightsRead::int8 ? DType::int8_packed : DType::bf16_packed) {}
  ~PackedWeights();
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;
  /// Packs them. To be called before the first pass, and whenever the weights have changed.
  void refresh();
  /// Whether passes are to ask for them (nn::Pass::packed).
  bool in_use() const { return model_ != nullptr; }

 private:
  Decoder* model_;
  DType type_;
};

/// For as long as this lives the model answers without its adapter.
class BaseAlone {
 public:
  explicit BaseAlone(Decoder& model) : model_(model) { model_.use_adapter(false); }
  ~BaseAlone() { model_.use_adapter(true); }
  BaseAlone(const BaseAlone&) = delete;
  BaseAlone& operator=(const BaseAlone&) = delete;

 private:
  Decoder& model_;
};

}  // namespace troupe::engine::models
