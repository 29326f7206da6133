#include "engine/train/footprint.h"
#include "engine/ops/cpu/cpu_options.h"

#include <algorithm>

namespace troupe::engine::train {
namespace {

using models::NormPlace;

/// What one rank has of a row.
struct Widths {
  Widths(const models::DecoderSpec& spec, const models::Split& split)
      : hidden(spec.width),
        heads(split.heads.size()),
        kv_heads(split.kv_heads.size()),
        queries(heads * spec.head_size),
        keys(kv_heads * spec.head_size),
        inner(split.inner.size()),
        vocabulary(split.vocabulary.size()),
        norm(spec.width + (spec.layer_norm ? 2 : 1)) {}
  std::int64_t hidden, heads, kv_heads, queries, keys, inner, vocabulary;
  std::int64_t norm;  ///< a norm's input, and what it found in a row
};

std::int64_t attention(const models::DecoderSpec& spec, const Widths& of,
                       const nn::Recomputed& recomputed) {
  std::int64_t sum = of.queries + 2 * of.keys;
  if (spec.head_norms) sum += of.queries + of.keys + of.heads + of.kv_heads;
  if (spec.width_norms) sum += of.queries + of.keys + 2;
  return recomputed.attention ? sum : sum + of.queries + of.heads;
}

std::int64_t mlp(const models::DecoderSpec& spec, const Widths& of,
                 const nn::Recomputed& recomputed) {
  return of.inner * ((spec.gated ? 2 : 1) + (recomputed.activation ? 0 : 1));
}

// The norms of a layer with what they give, and the inputs of its parts.
std::int64_t around(const models::DecoderSpec& spec, const Widths& of,
                    const nn::Recomputed& recomputed) {
  const std::int64_t before = of.norm + (recomputed.norm ? 0 : of.hidden);
  switch (spec.norm_place) {
    case NormPlace::before:
      return 2 * before;
    case NormPlace::after:
      return 2 * (of.hidden + of.norm);
    case NormPlace::both:
      return 2 * (before + of.norm);
    case NormPlace::shared:
      return before;
  }
  return 0;
}

std::int64_t layer(const models::DecoderSpec& spec, const Widths& of,
                   const nn::Recomputed& recomputed) {
  return around(spec, of, recomputed) + attention(spec, of, recomputed) + mlp(spec, of, recomputed);
}

// The operands of products that are packed for all threads: inputs and weights of the widest, or of
// a group, and of the language head the gradients of some columns of logits, the logits of a chunk
// or of the first rows, its inputs and their gradients, and its weight in two orders, of those
// columns and of many (all that in f32; in bf16 operands take half the room).
std::int64_t packed(const models::DecoderSpec& spec, const Widths& of, std::int64_t tokens,
                    bool slopes_known) {
  const std::int64_t widest = std::max({of.inner, of.queries, of.hidden});
  const std::int64_t group =
      std::max({of.inner * (spec.gated ? 2 : 1), of.queries + 2 * of.keys, widest});
  const auto joined = [&](std::int64_t rows) {
    return rows * (rows * group <= ops::max_packed_elements ? group : widest);
  };
  const std::int64_t left = joined(tokens), right = std::max(joined(of.hidden), tokens * widest);
  if (spec.labels > 0) return left + right;
  const ops::CpuOptions options;
  const std::int64_t columns = std::min(of.vocabulary, ops::lm_head_columns),
                     below = std::min(of.vocabulary * of.hidden, ops::lm_head_weight_elements);
  const std::int64_t rows = std::min(tokens, ops::lm_head_rows(of.vocabulary, options.max_logits));
  const bool once =
      slopes_known &&
      of.vocabulary ==
          spec.vocabulary;  // ranks with parts of it have a softmax between the two ways
  const std::int64_t logits =
      once ? rows * of.vocabulary : std::min(tokens * of.vocabulary, options.max_kept_logits);
  return left + right + (rows + of.hidden) * columns + below + 4 * tokens * of.hidden + logits;
}

std::uint64_t bytes(std::int64_t floats) {
  return 4 * static_cast<std::uint64_t>(std::max<std::int64_t>(0, floats));
}

}  // namespace

std::int64_t kept_floats(const models::DecoderSpec& spec, const nn::Recomputed& recomputed,
                         const models::Split& split) {
  const Widths of(spec, split);
  return spec.layers * (recomputed.layers ? of.hidden : layer(spec, of, recomputed)) +
         of.norm * (spec.embedding_norm ? 2 : 1);
}

Footprint footprint(const models::DecoderSpec& spec, const nn::Recomputed& recomputed,
                    std::int64_t tokens, const models::Split& split, bool slopes_known) {
  Footprint out;
  std::int64_t trained = 0, all = 0;
  for (const auto& tensor : models::parameter_list(spec, split)) {
    all += tensor.shape.count();
    if (tensor.trainable) trained += tensor.shape.count();
  }
  out.weights = bytes(all), out.gradients = bytes(trained), out.moments = bytes(2 * trained);
  out.kept = bytes(tokens * kept_floats(spec, recomputed, split));
  const Widths of(spec, split);
  // The highest point is the way back through the last layer's MLP: the gradients of what the head
  // read, of the last hidden states and of the layer's output, and those of the inner values; a
  // layer that is computed again stands beside them.
  std::int64_t beside = 4 * of.hidden + of.inner;
  if (recomputed.layers) beside += layer(spec, of, recomputed);
  if (recomputed.activation) beside += of.inner;
  if (recomputed.norm) beside += of.hidden;
  out.passing = bytes(tokens * beside);
  out.products = bytes(packed(spec, of, tokens, slopes_known));
  return out;
}

}  // namespace troupe::engine::train
