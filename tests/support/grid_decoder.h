// Decoders that are hard to split, on every rank of a grid of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/base/text/text.h"
#include "engine/nn/logical_tensors.h"
#include "engine/parallel/grid.h"
#include "tests/support/llama_spec.h"
#include "tests/support/on_ranks.h"
#include "tests/support/random_decoder.h"

namespace troupe::test {

using engine::parallel::Grid;
using engine::parallel::Mesh;

/// Calls work(mesh) on every rank of a grid of threads; returns the results by rank.
template <class Work>
auto on_grid(Grid grid, const Work& work) {
  std::vector<std::invoke_result_t<Work, const Mesh&>> results(
      static_cast<std::size_t>(grid.ranks()));
  on_ranks(grid.ranks(), [&](engine::parallel::Communicator& own) {
    const Mesh mesh = value_or_throw(Mesh::create(own.split(0, own.rank()), grid));
    results[static_cast<std::size_t>(own.rank())] = work(mesh);
  });
  return results;
}

struct GridModel {
  std::string title;
  engine::models::DecoderSpec spec;
  int max_tp;  ///< largest of 1, 2, 4 that can split the model
};
inline void PrintTo(const GridModel& model, std::ostream* out) {
  *out << model.title;
}

inline GridModel grid_model(std::string title, int heads, int kv_heads, int max_tp, bool tied,
                            bool biases) {
  // Neither vocabulary nor inner width is divisible, and H*K is not D.
  engine::models::DecoderSpec spec = llama_spec({.vocabulary = 37,
                                                 .width = 20,
                                                 .layers = 2,
                                                 .inner = 27,
                                                 .heads = heads,
                                                 .kv_heads = kv_heads,
                                                 .head_size = 6});
  spec.tied = tied;
  spec.attention_bias = spec.output_bias = spec.mlp_bias = biases;
  return {std::move(title), std::move(spec), max_tp};
}

inline GridModel with_head_norms(GridModel model) {
  model.spec.head_norms = true;
  return model;
}

/// Features of the other families in combinations: Gemma's norms, caps, windows and two rotary
/// tables; BLOOM's ALiBi slopes and embedding norm with GPT-2's positions and plain MLP; Cohere's
/// parallel attention and MLP with Granite's multipliers; OLMo 2's norms of all queries and keys;
/// MiniCPM3's latent attention; GPT-NeoX's and Nemotron's LayerNorms before parallel attention and
/// MLP, with Hunyuan's norms of rotated heads and Phi's
/// bias of the language head.
inline std::vector<GridModel> family_models() {
  GridModel gemma =
      with_head_norms(grid_model("NormsOnBothSidesCapsAndWindows", 4, 2, 4, true, false));
  gemma.spec.norm_placement = engine::models::NormPlacement::both;
  gemma.spec.norm_offset = 1;
  gemma.spec.attention_scale = 0.3;
  gemma.spec.attention_softcap = 2;
  gemma.spec.logit_softcap = 3;
  gemma.spec.embedding_multiplier = 1.5;
  gemma.spec.activation = engine::ops::Activation::gelu_tanh;
  gemma.spec.rotary.push_back({{0.5, 0.2, 0}, 1.2});
  gemma.spec.layer = {{.window = 4, .rotary = 1}, {.window = 0, .rotary = 0}};
  GridModel bloom = grid_model("AlibiAndAPlainMlp", 6, 6, 4, false, true);
  bloom.spec.layer_norm = bloom.spec.norm_bias = bloom.spec.alibi = bloom.spec.embedding_norm =
      true;
  bloom.spec.gated = false;
  bloom.spec.learned_positions = 96;
  bloom.spec.activation = engine::ops::Activation::gelu;
  bloom.spec.rotary.clear();
  GridModel cohere = grid_model("SideBySideAndScaled", 4, 2, 4, true, false);
  cohere.spec.norm_placement = engine::models::NormPlacement::shared;
  cohere.spec.layer_norm = true;
  cohere.spec.logit_scale = 0.25;
  cohere.spec.residual_multiplier = 0.5;
  GridModel olmo = grid_model("NormsOfAllHeads", 4, 2, 4, false, false);
  olmo.spec.norm_placement = engine::models::NormPlacement::after;
  olmo.spec.width_norms = true;
  GridModel latent = grid_model("LatentAttention", 4, 4, 4, false, true);
  latent.spec.latent = {.query_rank = 7, .key_rank = 8, .rotary = 2, .value_size = 4};
  latent.spec.rotary = {{{0.5, 0, 0}}};
  GridModel neox = grid_model("ANormForEachSideBySide", 4, 2, 4, false, true);
  neox.spec.norm_placement = engine::models::NormPlacement::parallel;
  neox.spec.layer_norm = neox.spec.norm_bias = neox.spec.rotated_head_norms = true;
  neox.spec.norm_offset = 1;
  neox.spec.gated = false;
  neox.spec.head_bias = true;
  neox.spec.activation = engine::ops::Activation::relu2;
  return {gemma, bloom, cohere, olmo, latent, neox};
}

/// Experts in all layers, chosen in groups and with a bias, and a shared one with a gate.
inline GridModel mixture_model() {
  GridModel mixture = grid_model("Experts", 4, 2, 4, false, false);
  mixture.spec.experts =
      engine::models::ExpertsSpec{.router = {.experts = 6,
                                             .chosen = 2,
                                             .score = engine::ops::RouterScore::sigmoid,
                                             .groups = 3,
                                             .kept_groups = 2,
                                             .renormalize = engine::ops::Renormalize::sum},
                                  .choice_bias = true,
                                  .inner = 5,
                                  .shared_inner = 7,
                                  .shared_gate = true,
                                  .sparse = {}};
  return mixture;
}

/// Key/value heads that are split evenly, replicated on several ranks, and split unevenly; with and
/// without biases and an untied head.
inline std::vector<GridModel> grid_models() {
  std::vector<GridModel> all{grid_model("EachHeadItsKeys", 4, 4, 4, true, false),
                             grid_model("GroupedHeadsWithBiases", 8, 2, 4, false, true),
                             grid_model("OneKeyHeadForAll", 4, 1, 4, true, true),
                             grid_model("UnevenGroups", 6, 3, 2, false, false),
                             with_head_norms(grid_model("NormedHeads", 4, 2, 4, false, false))};
  for (auto& model : family_models()) all.push_back(std::move(model));
  return all;
}

/// The same, and a mixture of experts, which context parallelism does not divide.
inline std::vector<GridModel> staged_models() {
  std::vector<GridModel> all = grid_models();
  all.push_back(mixture_model());
  return all;
}

/// The same with this number of layers.
inline GridModel deep(GridModel model, std::int64_t layers = 5) {
  model.spec.layers = layers;
  if (!model.spec.layer.empty())
    model.spec.layer.resize(static_cast<std::size_t>(layers), model.spec.layer.back());
  return model;
}

/// The same body with a score head.
inline GridModel scored(GridModel model, int labels, bool bias) {
  model.title += cat("Scores", labels);
  model.spec.labels = labels;
  model.spec.score_bias = bias;
  return model;
}

/// The groups of the mesh that share a model, with these numbers of layers on its stages.
inline engine::models::ModelPart part_on(const Mesh& mesh, std::vector<std::int64_t> layers = {},
                                         int ulysses = 1) {
  engine::models::ModelPart part{&mesh.tp(), &mesh.pp(), std::move(layers)};
  part.cp = &mesh.cp();
  part.ulysses = ulysses;
  return part;
}

/// Logical values of an arena of the model on rank 0. All ranks call it.
inline std::vector<float> gather_model(const engine::models::Decoder& model, const Tensor& arena,
                                       const Mesh& mesh,
                                       const engine::nn::ArenaShards* shards = nullptr) {
  using engine::nn::LogicalTensors;
  if (model.pp() == nullptr)
    return engine::nn::gather_logical(model.parameters(), arena, mesh, shards);
  auto stage =
      shards == nullptr
          ? std::make_unique<LogicalTensors>(model.parameters(), std::vector{arena}, &mesh.tp())
          : std::make_unique<LogicalTensors>(model.parameters(), std::vector<Tensor>(),
                                             std::vector{arena}, *shards, mesh);
  LogicalTensors tensors(model.whole(), std::move(stage), mesh);
  std::vector<float> all;
  for (std::size_t i = 0; i < model.whole().all().size(); ++i) {
    const auto values = tensors.gather(0, i);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}
inline std::vector<float> gather_model(const engine::models::Decoder& model, const Mesh& mesh) {
  return gather_model(model, model.parameters().values(), mesh);
}

/// Sets this rank's part of the model from its logical values.
inline void scatter_model(std::span<const float> logical, engine::models::Decoder& model) {
  std::size_t at = 0;
  for (const auto& each : model.whole().all()) {
    const auto count = static_cast<std::size_t>(each.logical_shape().count());
    if (auto* own = model.parameters().find(each.name)) {
      std::vector<float> part(static_cast<std::size_t>(own->value.count()));
      engine::nn::copy_shard(logical.subspan(at, count), *own, part);
      model.device().upload(own->value, part);
    }
    at += count;
  }
}

/// A part of a model whose logical weights are determined by the seed.
inline std::unique_ptr<engine::models::Decoder> part_decoder(engine::ops::Device& device,
                                                             const GridModel& model,
                                                             std::uint64_t seed,
                                                             const engine::models::ModelPart& part,
                                                             bool with_gradients) {
  auto decoder =
      std::make_unique<engine::models::Decoder>(device, model.spec, with_gradients, part);
  scatter_model(random_values(engine::nn::logical_count(decoder->whole()), seed + 500, 0.5),
                *decoder);
  return decoder;
}

/// This rank's part.
inline std::unique_ptr<engine::models::Decoder> grid_decoder(
    engine::ops::Device& device, const GridModel& model, std::uint64_t seed, const Mesh& mesh,
    bool with_gradients, std::vector<std::int64_t> layers = {}, int ulysses = 1,
    bool divides_rows = false) {
  auto part = part_on(mesh, std::move(layers), ulysses);
  part.divides_rows = divides_rows;
  return part_decoder(device, model, seed, part, with_gradients);
}

}  // namespace troupe::test
