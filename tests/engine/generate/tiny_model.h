// A tiny decoder with random weights, and a full forward pass without a cache as the oracle of
// everything that generates.
#pragma once

#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "engine/models/decoder.h"

namespace troupe::test {

namespace models = engine::models;
namespace ops = engine::ops;
namespace nn = engine::nn;

inline models::DecoderSpec tiny_spec() {
  models::DecoderSpec spec;
  spec.architecture = "LlamaForCausalLM";
  spec.vocabulary = 37;
  spec.width = 24;
  spec.layers = 2;
  spec.inner = 40;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_size = 8;
  spec.tied = true;
  spec.attention_bias = true;
  spec.rotary.resize(1);
  for (int i = 0; i < spec.head_size / 2; ++i)
    spec.rotary[0].inverse_frequencies.push_back(std::pow(100.0, -2.0 * i / spec.head_size));
  spec.max_positions = 96;
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
  nn::ForwardContext pass{model.device(), layout, precision};
  pass.packed = packed;
  nn::Saved nothing = nn::Saved::nothing();
  return model.forward(tokens, pass, nothing);
}

/// What the trainer computes for the tokens of a sequence: logp[t] of tokens[t], by the fused head;
/// logp[0] is 0.
inline std::vector<float> trainer_logp(models::Decoder& model,
                                       const std::vector<std::int32_t>& tokens,
                                       float inverse_temperature,
                                       ops::Precision precision = ops::Precision::f32) {
  const Tensor hidden = full_forward(model, tokens, precision);
  std::vector<std::int32_t> targets(tokens.begin() + 1, tokens.end());
  targets.push_back(-1);
  std::vector<float> values = ops::to_host(
      model.device(),
      model.head().forward(hidden, targets, inverse_temperature, precision, false).logp);
  values.insert(values.begin(), 0.0F);
  values.pop_back();
  return values;
}

}  // namespace troupe::test
