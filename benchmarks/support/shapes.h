// Model shapes of the benchmarks: three sizes typical of small machines, with random tied weights,
// in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/models/decoder.h"

namespace troupe::benchmarks {

struct ModelShape {
  std::string name;
  std::int64_t width = 0, layers = 0, heads = 0, kv_heads = 0, inner = 0, vocabulary = 0;
  /// Tokens per sequence and sequences per step of the training benchmarks.
  std::int64_t sequence = 0, batch = 0;
  bool biases = false;  ///< of queries, keys and values, as in Qwen2

  std::int64_t head_size() const { return width / heads; }
  /// Weights of the layers' matrices; of all matrices, counting the head once.
  std::int64_t layer_weights() const;
  std::int64_t weights() const { return layer_weights() + vocabulary * width; }
  /// FLOP of the products of attention for a token that sees `keys` keys, forward, over all layers.
  double attention(double keys) const { return 4.0 * static_cast<double>(layers * width) * keys; }
};

/// Returns "a" (15 million weights), "b" (110 million), "c" (Qwen2.5-0.5B's), or "tiny", which is
/// for tests. Errc::usage.
Result<ModelShape> shape_of(std::string_view name);

engine::models::DecoderSpec spec_of(const ModelShape& shape);
/// Creates a model, or this rank's part of it: matrices uniform with a standard deviation of 0.02,
/// gains 1, biases 0.
std::unique_ptr<engine::models::Decoder> make_model(engine::ops::Device& device,
                                                    const ModelShape& shape, bool with_gradients,
                                                    const engine::models::ModelPart& part = {});
/// Fills a tensor with random values, uniform in [-reach, reach].
void fill_random(engine::ops::Device& device, Tensor& to, float reach, std::uint64_t seed);
/// Returns random token ids; equal seeds give equal ids.
std::vector<std::int32_t> random_tokens(const ModelShape& shape, std::int64_t count,
                                        std::uint64_t seed);

}  // namespace troupe::benchmarks
