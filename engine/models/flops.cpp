#include "engine/models/flops.h"

namespace troupe::engine::models {

ForwardFlops forward_flops(const DecoderSpec& spec) {
  const auto layers = static_cast<double>(spec.layers), width = static_cast<double>(spec.width),
             inner = static_cast<double>(spec.inner);
  const double queries = spec.heads * spec.head_size, keys = spec.kv_heads * spec.head_size;
  const double mlp = (spec.gated ? 3 : 2) * inner;
  const double outputs = spec.labels > 0 ? spec.labels : static_cast<double>(spec.vocabulary);
  return {.layers = layers * width * (4 * queries + 4 * keys + 2 * mlp),
          .attention = 4 * layers * queries,
          .head = 2 * width * outputs};
}

}  // namespace troupe::engine::models
