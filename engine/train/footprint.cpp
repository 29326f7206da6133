#include "engine/train/footprint.h"
#include "engine/ops/cpu/cpu_options.h"

#include <algorithm>

#include "engine/nn/layers.h"

namespace troupe::engine::train {
namespace {

using models::NormPlacement;

/// Widths of one rank's part of a row.
struct Widths {
  Widths(const models::DecoderSpec& spec, const models::Split& split)
      : hidden(spec.width),
        heads(split.heads.size()),
        kv_heads(split.kv_heads.size()),
        queries(heads * spec.head_size),
        keys(kv_heads * spec.head_size),
        inner(split.inner.size()),
        vocabulary(split.vocabulary.size()),
        residual(share_of_rows(spec.width, split)),
        norm(share_of_rows(spec.width + (spec.layer_norm ? 2 : 1), split)) {}
  /// With sequence parallelism a rank has some of the rows.
  static std::int64_t share_of_rows(std::int64_t floats, const models::Split& split) {
    return split.divides_rows ? (floats + split.parts - 1) / split.parts : floats;
  }
  std::int64_t hidden, heads, kv_heads, queries, keys, inner, vocabulary;
  std::int64_t residual;  ///< the input of a layer
  std::int64_t norm;      ///< a norm's input and its statistics of a row
};

std::int64_t attention(const models::DecoderSpec& spec, const Widths& of,
                       const nn::Recomputed& recomputed) {
  std::int64_t sum = of.queries + 2 * of.keys;
  std::int64_t outputs = of.queries + of.heads;
  if (spec.latent) {  // the vectors before and after their norms, and outputs without padding
    sum += 2 * (spec.latent->query_rank + spec.latent->key_rank + 1);
    outputs += of.heads * spec.value_size();
  }
  if (spec.head_norms || spec.rotated_head_norms)
    sum += of.queries + of.keys + of.heads + of.kv_heads;
  if (spec.width_norms) sum += of.queries + of.keys + 2;
  return recomputed.has(nn::Recompute::attention) ? sum : sum + outputs;
}

std::int64_t mlp(const models::DecoderSpec& spec, const Widths& of,
                 const nn::Recomputed& recomputed) {
  return of.inner * ((spec.gated ? 2 : 1) + (recomputed.has(nn::Recompute::activation) ? 0 : 1));
}

// Rows of the chosen experts with their inner activations and outputs, routes, and a shared expert.
std::int64_t mixture(const models::ExpertsSpec& experts, const Widths& of,
                     const nn::Recomputed& recomputed) {
  const std::int64_t chosen = experts.router.chosen,
                     inner = recomputed.has(nn::Recompute::activation) ? 2 : 3;
  return experts.router.experts + chosen * (4 + 2 * of.hidden + inner * experts.inner) +
         inner * experts.shared_inner + (experts.shared_gate ? of.hidden + 1 : 0);
}

// The norms of a layer with their outputs, and the inputs of its parts.
std::int64_t around(const models::DecoderSpec& spec, const Widths& of,
                    const nn::Recomputed& recomputed) {
  const std::int64_t before = of.norm + (recomputed.has(nn::Recompute::norm) ? 0 : of.hidden);
  switch (spec.norm_placement) {
    case NormPlacement::before:
      return 2 * before;
    case NormPlacement::after:
      return 2 * (of.hidden + of.norm);
    case NormPlacement::both:
      return 2 * (before + of.norm);
    case NormPlacement::shared:
      return before;
    case NormPlacement::parallel:
      return 2 * before - of.residual;  // both norms have one input
  }
  return 0;
}

std::int64_t layer(const models::DecoderSpec& spec, const Widths& of,
                   const nn::Recomputed& recomputed, std::size_t index) {
  return around(spec, of, recomputed) + attention(spec, of, recomputed) +
         (spec.has_experts(static_cast<std::int64_t>(index))
              ? mixture(*spec.experts, of, recomputed)
              : mlp(spec, of, recomputed));
}

/// Floats of a stage's layers for one token.
struct LayerFloats {
  std::int64_t kept = 0;   ///< until the backward pass
  std::int64_t again = 0;  ///< what recomputed layers add to them during the backward pass
};

LayerFloats layers(const models::DecoderSpec& spec, const Widths& of,
                   const nn::Recomputed& recomputed) {
  LayerFloats out;
  std::int64_t largest = 0, last = 0;  // recomputed at once; what the layers after them keep
  for (const auto& group : nn::layer_groups(
           recomputed, static_cast<std::size_t>(std::max<std::int64_t>(0, spec.layers)))) {
    std::int64_t whole = 0;
    for (std::size_t i = group.begin; i < group.end; ++i) whole += layer(spec, of, recomputed, i);
    out.kept += group.recomputed ? of.residual : whole;
    if (group.recomputed) largest = std::max(largest, whole);
    last = group.recomputed ? 0 : whole;
  }
  // Layers that keep everything are through their backward pass before others are recomputed, but
  // for those that are recomputed in advance.
  out.again = recomputed.in_advance ? largest : std::max<std::int64_t>(0, largest - last);
  return out;
}

std::int64_t floats_per_word(ops::Precision precision) {
  return precision == ops::Precision::bf16 ? 2 : 1;
}

// Packed operands of GEMMs: inputs and weights of the widest GEMM or group. bf16 operands need
// half.
std::int64_t packed(const models::DecoderSpec& spec, const Widths& of, std::int64_t tokens,
                    ops::Precision precision) {
  const std::int64_t widest =
      std::max({of.inner, of.queries, of.hidden,
                spec.experts ? std::max(spec.experts->inner, spec.experts->shared_inner) : 0});
  const std::int64_t projected =
      spec.latent ? spec.latent->query_rank + spec.latent->key_rank + spec.latent->rotary
                  : of.queries + 2 * of.keys;
  const std::int64_t group = std::max({of.inner * (spec.gated ? 2 : 1), projected, widest});
  const auto joined = [&](std::int64_t rows) {
    return rows * (rows * group <= ops::max_packed_elements ? group : widest);
  };
  const std::int64_t left = joined(tokens), right = std::max(joined(of.hidden), tokens * widest);
  return (left + right) / floats_per_word(precision);
}

// Memory of the language head's passes: the gradients of some columns of logits, the logits of a
// chunk or of the first rows, its inputs and their gradients, and its weight in two orders.
std::int64_t head(const models::DecoderSpec& spec, const Widths& of, std::int64_t tokens,
                  bool grads_known, ops::Precision precision) {
  if (spec.labels > 0) return 0;
  const ops::CpuOptions options;
  const std::int64_t columns = std::min(of.vocabulary, ops::lm_head_columns),
                     below = std::min(of.vocabulary * of.hidden, ops::lm_head_weight_elements);
  const std::int64_t rows = std::min(tokens, ops::lm_head_rows(of.vocabulary, options.max_logits));
  const bool once =
      grads_known &&
      of.vocabulary ==
          spec.vocabulary;  // split vocabularies have a softmax between forward and backward
  const std::int64_t logits =
      once ? rows * of.vocabulary : std::min(tokens * of.vocabulary, options.max_kept_logits);
  return ((rows + of.hidden) * columns + below) / floats_per_word(precision) +
         4 * tokens * of.hidden + logits;
}

std::uint64_t bytes(std::int64_t floats) {
  return 4 * static_cast<std::uint64_t>(std::max<std::int64_t>(0, floats));
}

}  // namespace

std::int64_t kept_floats(const models::DecoderSpec& spec, const nn::Recomputed& recomputed,
                         const models::Split& split) {
  const Widths of(spec, split);
  return layers(spec, of, recomputed).kept + of.norm * (spec.embedding_norm ? 2 : 1);
}

Footprint footprint(const models::DecoderSpec& spec, const nn::Recomputed& recomputed,
                    std::int64_t tokens, const models::Split& split, bool grads_known,
                    ops::Precision precision) {
  Footprint out;
  std::int64_t trained = 0, all = 0, lookup = 0;
  for (const auto& tensor : models::parameter_list(spec, split)) {
    all += tensor.shape.count();
    if (!tensor.trainable) continue;
    trained += tensor.shape.count();
    if (spec.tied && spec.labels == 0 && tensor.name == "model.embed_tokens.weight")
      lookup = tensor.shape.count();
  }
  out.weights = bytes(all);
  out.gradients = bytes(trained + lookup);
  out.moments = bytes(2 * trained);
  out.kept = bytes(tokens * kept_floats(spec, recomputed, split));
  const Widths of(spec, split);
  // The peak is the backward pass of the last layer's MLP: gradients of the head's input, of the
  // last hidden states, of the layer's output and of its inner activations, and the activations of
  // recomputed layers.
  std::int64_t temporary = 4 * of.hidden + of.inner;
  if (spec.experts)  // gradients of the experts' rows, outputs and inner activations
    temporary += spec.experts->router.chosen * (2 * of.hidden + spec.experts->inner);
  temporary += layers(spec, of, recomputed).again;
  if (recomputed.has(nn::Recompute::activation)) temporary += of.inner;
  if (recomputed.has(nn::Recompute::norm)) temporary += of.hidden;
  out.passing = bytes(tokens * temporary);
  // The head returns its memory before the backward pass of the layers.
  const std::int64_t in_head = head(spec, of, tokens, grads_known, precision),
                     normalized = of.vocabulary * of.hidden;  // and its two gradients
  out.products = bytes(packed(spec, of, tokens, precision) +
                       std::max<std::int64_t>(0, in_head - tokens * temporary) +
                       (spec.normalized_head ? 3 * normalized : 0));
  return out;
}

}  // namespace troupe::engine::train
