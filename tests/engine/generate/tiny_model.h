// A tiny decoder with random weights, and a full forward pass without a cache, the oracle of the
// generation tests.
#pragma once

#include <memory>
#include <random>
#include <vector>

#include "engine/models/decoder.h"
#include "tests/support/llama_spec.h"

namespace troupe::test {

namespace models = engine::models;
namespace ops = engine::ops;
namespace nn = engine::nn;

inline models::DecoderSpec tiny_spec() {
  models::DecoderSpec spec = llama_spec({.vocabulary = 37,
                                         .width = 24,
                                         .layers = 2,
                                         .inner = 40,
                                         .heads = 4,
                                         .kv_heads = 2,
                                         .head_size = 8});
  spec.tied = true;
  spec.attention_bias = true;
  return spec;
}

inline std::unique_ptr<models::Decoder> tiny_model(ops::Device& device, unsigned seed = 1,
                                                   models::DecoderSpec spec = tiny_spec()) {
  auto model = std::make_unique<models::Decoder>(device, std::move(spec), false);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.4F);
  for (auto& parameter : model->parameters().all()) {
    std::vector<float> values(static_cast<std::size_t>(parameter.value.count()));
    for (float& x : values)
      x = normal(random) + (parameter.value.shape().rank() == 1 ? 1.0F : 0.0F);
    device.upload(parameter.value, values);
  }
  return model;
}

/// Hidden states of one sequence, without a cache; `packed` as in nn::ForwardContext.
inline Tensor full_forward(models::Decoder& model, const std::vector<std::int32_t>& tokens,
                           ops::Precision precision = ops::Precision::f32, bool packed = false) {
  ops::Layout layout;
  layout.offsets = {0, static_cast<std::int32_t>(tokens.size())};
  for (std::size_t i = 0; i < tokens.size(); ++i)
    layout.positions.push_back(static_cast<std::int32_t>(i));
  const ops::PreparedLayout prepared = model.device().prepare(std::move(layout));
  nn::ForwardContext pass{model.device(), prepared, precision};
  pass.packed = packed;
  nn::Saved nothing = nn::Saved::nothing();
  return model.forward(tokens, pass, nothing);
}

/// Log-probabilities as the trainer computes them: logp[t] of tokens[t], by the fused head; logp[0]
/// is 0. `masks`: of all tokens, or nullptr.
inline std::vector<float> trainer_logp(models::Decoder& model,
                                       const std::vector<std::int32_t>& tokens,
                                       float inverse_temperature,
                                       ops::Precision precision = ops::Precision::f32,
                                       const IdSets* masks = nullptr) {
  const Tensor hidden = full_forward(model, tokens, precision);
  std::vector<std::int32_t> targets(tokens.begin() + 1, tokens.end());
  targets.push_back(-1);
  IdSets next;  // of each row's target
  if (masks != nullptr) {
    next.append(*masks, 1, tokens.size());
    next.append_whole(1);
  }
  std::vector<float> values = ops::to_host(
      model.device(),
      model.head().forward(hidden, {targets, inverse_temperature, precision, &next}, false).logp);
  values.insert(values.begin(), 0.0F);
  values.pop_back();
  return values;
}

}  // namespace troupe::test
