// The spec of a small Llama.
#pragma once

#include <cmath>
#include <cstdint>

#include "engine/models/spec.h"

namespace troupe::test {

struct LlamaSizes {
  std::int64_t vocabulary, width, layers, inner;
  int heads, kv_heads, head_size;
};

/// A small Llama with rotary frequencies of base 100.
inline engine::models::DecoderSpec llama_spec(const LlamaSizes& sizes,
                                              std::int64_t max_positions = 96) {
  engine::models::DecoderSpec spec{.architecture = "LlamaForCausalLM",
                                   .vocabulary = sizes.vocabulary,
                                   .width = sizes.width,
                                   .layers = sizes.layers,
                                   .inner = sizes.inner,
                                   .heads = sizes.heads,
                                   .kv_heads = sizes.kv_heads,
                                   .head_size = sizes.head_size};
  spec.rotary.resize(1);
  for (int i = 0; i < spec.head_size / 2; ++i)
    spec.rotary[0].inverse_frequencies.push_back(std::pow(100.0, -2.0 * i / spec.head_size));
  spec.max_positions = max_positions;
  return spec;
}

}  // namespace troupe::test
