#include "benchmarks/support/shapes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/base/random/random.h"
#include "engine/base/text/text.h"

namespace troupe::benchmarks {
namespace {

constexpr std::int64_t block =
    std::int64_t{1}
    << 20;  // values that are uploaded at once: no second copy of a model is ever in memory

// SplitMix64 (Steele et al. 2014): half a billion values in about a second.
std::uint64_t next(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

}  // namespace

std::int64_t ModelShape::layer_weights() const {
  return layers * (2 * width * width + 2 * width * kv_heads * head_size() + 3 * width * inner);
}

Result<ModelShape> shape_of(std::string_view name) {
  static const std::array<ModelShape, 4> shapes{{
      {"a", 288, 6, 6, 6, 768, 32000, 256, 8, false},
      {"b", 768, 12, 12, 12, 2048, 32000, 512, 4, false},
      {"c", 896, 24, 14, 2, 4864, 151936, 512, 1, true},
      {"tiny", 32, 2, 2, 1, 64, 128, 16, 2, true},
  }};
  const auto* found = std::ranges::find(shapes, name, &ModelShape::name);
  if (found == shapes.end())
    return fail(Errc::usage, cat("--shape must be a, b or c, found ", quote(name)));
  return *found;
}

engine::models::DecoderSpec spec_of(const ModelShape& shape) {
  engine::models::DecoderSpec spec;
  spec.architecture = shape.biases ? "Qwen2ForCausalLM" : "LlamaForCausalLM";
  spec.vocabulary = shape.vocabulary;
  spec.width = shape.width;
  spec.layers = shape.layers;
  spec.inner = shape.inner;
  spec.heads = static_cast<int>(shape.heads);
  spec.kv_heads = static_cast<int>(shape.kv_heads);
  spec.head_size = static_cast<int>(shape.head_size());
  spec.tied = true;
  spec.attention_bias = shape.biases;
  spec.max_positions = 2048;
  engine::nn::RotarySpec rotary;
  for (int i = 0; i < spec.head_size; i += 2)
    rotary.inverse_frequencies.push_back(
        std::pow(1e4, -static_cast<double>(i) / static_cast<double>(spec.head_size)));
  spec.rotary.push_back(rotary);
  return spec;
}

void fill_random(engine::ops::Device& device, Tensor& to, float reach, std::uint64_t seed) {
  std::vector<float> values;
  for (std::int64_t begin = 0; begin < to.count(); begin += block) {
    const std::int64_t end = std::min(begin + block, to.count());
    values.resize(static_cast<std::size_t>(end - begin));
    std::uint64_t state = seed * 0x2545f4914f6cdd1du + static_cast<std::uint64_t>(begin);
    for (float& value : values)
      value = reach * (static_cast<float>(next(state) >> 40) * 0x1p-23f - 1);
    Tensor part = to.flat(begin, end);
    device.upload(part, values);
  }
}

std::unique_ptr<engine::models::Decoder> make_model(engine::ops::Device& device,
                                                    const ModelShape& shape, bool with_gradients,
                                                    const engine::models::ModelPart& part) {
  auto model =
      std::make_unique<engine::models::Decoder>(device, spec_of(shape), with_gradients, part);
  std::uint64_t seed = 0;
  for (auto& parameter : model->parameters().all()) {
    if (parameter.value.shape().rank() >= 2) {
      fill_random(device, parameter.value, 0.02f * std::sqrt(3.0f), ++seed);
    } else {
      device.fill(parameter.value, parameter.name.ends_with(".bias") ? 0.0f : 1.0f);
    }
  }
  return model;
}

std::vector<std::int32_t> random_tokens(const ModelShape& shape, std::int64_t count,
                                        std::uint64_t seed) {
  std::vector<std::int32_t> out;
  for (std::int64_t i = 0; i < count; ++i)
    out.push_back(static_cast<std::int32_t>(uniform_below(
        static_cast<std::uint64_t>(shape.vocabulary), seed, 0, static_cast<std::uint64_t>(i))));
  return out;
}

}  // namespace troupe::benchmarks
