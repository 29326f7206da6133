#include "engine/models/flops.h"

namespace troupe::engine::models {

namespace {

// Elements of the matrices of multi-head latent attention.
double latent_projections(const DecoderSpec& spec) {
  const auto width = static_cast<double>(spec.width), heads = static_cast<double>(spec.heads),
             q = static_cast<double>(spec.latent->query_rank),
             kv = static_cast<double>(spec.latent->key_rank);
  const double size = spec.head_size, rotary = spec.latent->rotary, value = spec.latent->value_size;
  return q * (width + heads * size) + width * (kv + rotary) + kv * heads * (size - rotary + value) +
         heads * value * width;
}

// Rows of the matrices with which a token is multiplied in a layer of experts.
double experts(const DecoderSpec& spec) {
  if (!spec.experts) return 0;
  const ExpertsSpec& of = *spec.experts;
  const std::int64_t inner = of.router.chosen * of.inner + of.shared_inner;
  return static_cast<double>(of.router.experts + 3 * inner + (of.shared_gate ? 1 : 0));
}

}  // namespace

ForwardFlops forward_flops(const DecoderSpec& spec) {
  const auto layers = static_cast<double>(spec.layers), width = static_cast<double>(spec.width),
             inner = static_cast<double>(spec.inner);
  const double queries = spec.heads * spec.head_size, keys = spec.kv_heads * spec.head_size,
               values = spec.heads * spec.value_size();
  const double mlp = (spec.gated ? 3 : 2) * inner,
               sparse = static_cast<double>(spec.expert_layers());
  const double outputs = spec.labels > 0 ? spec.labels : static_cast<double>(spec.vocabulary);
  const double projections =
      spec.latent ? latent_projections(spec) : width * (2 * queries + 2 * keys);
  return {.layers = 2 * (layers * projections +
                         width * ((layers - sparse) * mlp + sparse * experts(spec))),
          .attention = 2 * layers * (queries + values),
          .head = 2 * width * outputs};
}

}  // namespace troupe::engine::models
