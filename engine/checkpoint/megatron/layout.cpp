#include "engine/checkpoint/megatron/layout.h"

#include <algorithm>
#include <string_view>

#include "engine/base/text/text.h"
#include "engine/models/storage.h"

namespace troupe::engine::checkpoint {
namespace {

using models::DecoderSpec;

struct ModuleName {
  std::string_view mcore, legacy;
};
constexpr ModuleName embedding{"embedding.word_embeddings",
                               "language_model/embedding/word_embeddings/"},
    layer_prefix{"decoder.layers.", "language_model/encoder/layers."},
    embedding_norm{"embedding.word_embeddings.norm", ""},
    first_norm{"input_layernorm", "input_norm"},
    second_norm{"pre_mlp_layernorm", "post_attention_norm"},
    norm_of_attention{"post_attn_norm", ""}, norm_of_mlp{"post_mlp_layernorm", ""},
    qkv{"self_attention.linear_qkv", "self_attention.query_key_value"},
    attention_output{"self_attention.linear_proj", "self_attention.dense"},
    gate_up{"mlp.linear_fc1", "mlp.dense_h_to_4h"}, down{"mlp.linear_fc2", "mlp.dense_4h_to_h"},
    last_norm{"decoder.final_layernorm", "language_model/encoder/final_norm"},
    head{"output_layer", "language_model/output_layer/"},
    tied_head{"output_layer", "word_embeddings_for_head/"}, score{"rm_head", "rm_head/"};

class RankPlan {
 public:
  RankPlan(const DecoderSpec& spec, const MegatronGrid& grid, int tensor_rank)
      : spec_(spec), grid_(grid), rank_(tensor_rank) {}

  void embed() {
    rows_of_vocabulary(embedding, embed_name, false);
    if (spec_.embedding_norm) norm(embedding_norm, "model.embed_norm", spec_.width);
  }
  void layer(std::int64_t index, std::int64_t local);
  void end(bool last_stage_only);
  std::vector<ShardTensor> take() { return std::move(out_); }

 private:
  static constexpr std::string_view embed_name = "model.embed_tokens.weight";

  std::string name(const ModuleName& module, std::string_view kind) const {
    const auto text = grid_.names == MegatronNames::mcore ? module.mcore : module.legacy;
    return cat(prefix_, text, text.ends_with('/') ? "" : ".", kind);
  }
  void norm(const ModuleName& module, const std::string& parameter, std::int64_t width) {
    vector(name(module, "weight"), {{parameter + ".weight", 0, width}});
    if (spec_.norm_bias) vector(name(module, "bias"), {{parameter + ".bias", 0, width}});
  }
  void head_norm(const ModuleName& module, const std::string& parameter) {
    vector(name(module, "weight"), {{parameter + ".weight", 0, spec_.head_size}});
  }
  void vector(std::string tensor, std::vector<RowBlock> blocks) {
    out_.push_back({.name = std::move(tensor), .blocks = std::move(blocks), .vector = true});
  }
  void rows(std::string tensor, std::vector<RowBlock> blocks, std::int64_t columns) {
    out_.push_back({std::move(tensor), std::move(blocks), 0, columns, columns, false});
  }
  /// This rank's part of the columns.
  void columns(std::string tensor, std::string parameter, std::int64_t rows, std::int64_t all) {
    const std::int64_t part = all / grid_.tensor;
    out_.push_back({std::move(tensor), {{std::move(parameter), 0, rows}}, rank_ * part, part, all});
  }
  void rows_of_vocabulary(const ModuleName& module, std::string_view parameter, bool copy);
  void attention(const std::string& hf);
  void latent_attention(const std::string& hf);
  void mlp(const std::string& hf);
  std::vector<RowBlock> groups(const std::string& hf, std::string_view kind) const;

  const DecoderSpec& spec_;
  const MegatronGrid& grid_;
  std::int64_t rank_;
  std::string prefix_;  ///< of a layer
  std::vector<ShardTensor> out_;
};

// Padding repeats the last row of the vocabulary.
void RankPlan::rows_of_vocabulary(const ModuleName& module, std::string_view parameter, bool copy) {
  const std::int64_t part = grid_.vocabulary / grid_.tensor, begin = rank_ * part,
                     known = std::max<std::int64_t>(0, std::min(part, spec_.vocabulary - begin));
  std::vector<RowBlock> blocks;
  const std::string parameter_name(parameter);
  if (known > 0) blocks.push_back({parameter_name, begin, known, copy});
  for (std::int64_t i = known; i < part; ++i)
    blocks.push_back({parameter_name, spec_.vocabulary - 1, 1, true});
  rows(name(module, "weight"), std::move(blocks), spec_.width);
}

// For each of this rank's groups of heads: its queries, its key, its value.
std::vector<RowBlock> RankPlan::groups(const std::string& hf, std::string_view kind) const {
  const std::int64_t part = spec_.kv_heads / grid_.tensor, size = spec_.head_size,
                     queries = spec_.heads / spec_.kv_heads * size;
  std::vector<RowBlock> blocks;
  for (std::int64_t group = rank_ * part; group < (rank_ + 1) * part; ++group) {
    blocks.push_back({cat(hf, "q_proj.", kind), group * queries, queries});
    blocks.push_back({cat(hf, "k_proj.", kind), group * size, size});
    blocks.push_back({cat(hf, "v_proj.", kind), group * size, size});
  }
  return blocks;
}

void RankPlan::attention(const std::string& hf) {
  columns(name(attention_output, "weight"), hf + "o_proj.weight", spec_.width,
          std::int64_t{spec_.heads} * spec_.value_size());
  if (spec_.output_bias)
    vector(name(attention_output, "bias"), {{hf + "o_proj.bias", 0, spec_.width}});
  if (spec_.latent) return latent_attention(hf);
  rows(name(qkv, "weight"), groups(hf, "weight"), spec_.width);
  if (spec_.attention_bias) vector(name(qkv, "bias"), groups(hf, "bias"));
  if (!spec_.head_norms) return;
  head_norm({"self_attention.q_layernorm", ""}, hf + "q_norm");
  head_norm({"self_attention.k_layernorm", ""}, hf + "k_norm");
}

// MindSpeed-LLM's multi-head latent attention: every rank has both projections down, and the rows
// of its heads of both projections up.
void RankPlan::latent_attention(const std::string& hf) {
  const auto& [query_rank, key_rank, rotary, value_size, eps] = *spec_.latent;
  const auto projections_down = [&](std::string_view kind) {
    return std::vector<RowBlock>{{cat(hf, "q_a_proj.", kind), 0, query_rank},
                                 {cat(hf, "kv_a_proj_with_mqa.", kind), 0, key_rank + rotary}};
  };
  rows(name(qkv, "weight"), projections_down("weight"), spec_.width);
  if (spec_.attention_bias) vector(name(qkv, "bias"), projections_down("bias"));
  vector(name({"self_attention.q_layernorm", ""}, "weight"),
         {{hf + "q_a_layernorm.weight", 0, query_rank}});
  vector(name({"self_attention.k_layernorm", ""}, "weight"),
         {{hf + "kv_a_layernorm.weight", 0, key_rank}});
  const std::int64_t heads = spec_.heads / grid_.tensor, queries = heads * spec_.head_size,
                     pairs = heads * (spec_.head_size - rotary + value_size);
  rows(name({"self_attention.linear_qb", ""}, "weight"),
       {{hf + "q_b_proj.weight", rank_ * queries, queries}}, query_rank);
  rows(name({"self_attention.linear_kvb", ""}, "weight"),
       {{hf + "kv_b_proj.weight", rank_ * pairs, pairs}}, key_rank);
}

void RankPlan::mlp(const std::string& hf) {
  const std::int64_t part = spec_.inner / grid_.tensor, begin = rank_ * part;
  const auto inner = [&](std::string_view kind) {
    std::vector<RowBlock> blocks;
    if (spec_.gated) blocks.push_back({cat(hf, "gate_proj.", kind), begin, part});
    blocks.push_back({cat(hf, "up_proj.", kind), begin, part});
    return blocks;
  };
  rows(name(gate_up, "weight"), inner("weight"), spec_.width);
  if (spec_.mlp_bias) vector(name(gate_up, "bias"), inner("bias"));
  columns(name(down, "weight"), hf + "down_proj.weight", spec_.width, spec_.inner);
  if (spec_.mlp_bias) vector(name(down, "bias"), {{hf + "down_proj.bias", 0, spec_.width}});
}

void RankPlan::layer(std::int64_t index, std::int64_t local) {
  const std::string hf = cat("model.layers.", index, ".");
  prefix_ = cat(grid_.names == MegatronNames::mcore ? layer_prefix.mcore : layer_prefix.legacy,
                local, ".");
  norm(first_norm, hf + "input_layernorm", spec_.width);
  attention(hf + "self_attn.");
  const bool both = spec_.norm_placement == models::NormPlacement::both;
  if (both) norm(norm_of_attention, hf + "post_self_attn_layernorm", spec_.width);
  norm(second_norm, hf + "post_attention_layernorm", spec_.width);
  mlp(hf + "mlp.");
  if (both) norm(norm_of_mlp, hf + "post_mlp_layernorm", spec_.width);
  prefix_.clear();
}

void RankPlan::end(bool last_stage_only) {
  norm(last_norm, "model.norm", spec_.width);
  if (spec_.labels > 0)
    columns(name(score, "weight"), "score.weight", spec_.labels, spec_.width);
  else if (!spec_.tied)
    rows_of_vocabulary(head, "lm_head.weight", false);
  else if (last_stage_only)
    rows_of_vocabulary(tied_head, embed_name, true);
}

/// What Megatron's layers have no place for, or "".
std::string_view without_place(const DecoderSpec& spec) {
  if (spec.learned_positions > 0) return "a table of positions";
  if (spec.width_norms) return "norms over all heads of a row";
  if (spec.norm_placement == models::NormPlacement::after)
    return "no norm before attention and MLP";
  if (spec.norm_placement == models::NormPlacement::shared) return "one norm for attention and MLP";
  if (spec.norm_placement == models::NormPlacement::parallel)
    return "attention and MLP side by side";
  if (spec.rotated_head_norms) return "norms of rotated queries and keys";
  if (spec.score_bias) return "a score head with a bias";
  if (spec.head_bias) return "a language head with a bias";
  const auto stored = models::stored_tensors(spec);
  const bool transposed =
      std::ranges::any_of(stored, [](const auto& each) { return each.transposed; });
  return transposed ? "transposed matrices" : "";
}

/// What only the layers of Megatron core have, or "".
std::string_view beyond_legacy(const DecoderSpec& spec) {
  if (spec.latent) return "multi-head latent attention";
  if (spec.head_norms) return "norms of queries and keys";
  if (spec.norm_placement == models::NormPlacement::both) return "norms behind attention and MLP";
  return spec.embedding_norm ? "a norm of embeddings" : "";
}

tl::unexpected<Error> not_divided(const std::string& where, std::string_view what,
                                  std::int64_t count, int ranks) {
  return fail(Errc::usage,
              cat(where, ": ", count, " ", what, " cannot be divided over ", ranks,
                  " tensor ranks; set --target-tensor-parallel-size to a factor of ", count));
}

}  // namespace

std::vector<std::int64_t> ShardTensor::shape() const {
  std::int64_t rows = 0;
  for (const RowBlock& block : blocks) rows += block.count;
  if (vector) return {rows};
  return {rows, columns};
}

Result<> check_megatron(const DecoderSpec& spec, const MegatronGrid& grid,
                        const std::string& where) {
  if (spec.experts)
    return fail(Errc::unsupported,
                cat(where, ": ", quote(spec.architecture),
                    " cannot be converted: mixtures of experts are not; expected one MLP in every "
                    "layer"));
  if (const auto what = without_place(spec); !what.empty())
    return fail(Errc::unsupported,
                cat(where, ": ", quote(spec.architecture), " cannot be converted: it has ", what,
                    ", for which MindSpeed's checkpoints define no tensors; expected norms before "
                    "attention and MLP, or on both sides, and no table of positions, as in Llama, "
                    "Qwen, Baichuan, ChatGLM, InternLM, MiniCPM, Gemma, Phi-3 or BLOOM"));
  if (const auto what = beyond_legacy(spec); !what.empty() && grid.names == MegatronNames::legacy)
    return fail(Errc::unsupported, cat(where, ": ", quote(spec.architecture), " has ", what,
                                       ", which only Megatron core has; add --use-mcore-models"));
  if (spec.kv_heads % grid.tensor != 0)
    return not_divided(where, "key/value heads", spec.kv_heads, grid.tensor);
  if (spec.inner % grid.tensor != 0)
    return not_divided(where, "channels of the MLP", spec.inner, grid.tensor);
  if (spec.labels > 0 && spec.width % grid.tensor != 0)
    return not_divided(where, "channels of the score head", spec.width, grid.tensor);
  std::vector<bool> seen(static_cast<std::size_t>(spec.layers), false);
  std::int64_t count = 0;
  for (const auto& stage : grid.layers)
    for (const auto& part : stage)
      for (const auto layer : part) {
        if (layer == empty_layer) continue;
        if (layer < 0 || layer >= spec.layers || seen[static_cast<std::size_t>(layer)])
          return fail(Errc::usage, cat(where, ": layer ", layer, " of ", spec.layers,
                                       " is repeated or does not exist"));
        seen[static_cast<std::size_t>(layer)] = true;
        ++count;
      }
  if (count != spec.layers)
    return fail(Errc::usage,
                cat(where, ": expected ", spec.layers, " layers over all stages, found ", count));
  return {};
}

std::vector<ShardTensor> shard_tensors(const DecoderSpec& spec, const MegatronGrid& grid,
                                       int tensor_rank, int pipeline_rank, int virtual_rank) {
  RankPlan plan(spec, grid, tensor_rank);
  if (pipeline_rank == 0 && virtual_rank == 0) plan.embed();
  const auto& layers =
      grid.layers[static_cast<std::size_t>(pipeline_rank)][static_cast<std::size_t>(virtual_rank)];
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (layers[i] != empty_layer) plan.layer(layers[i], static_cast<std::int64_t>(i));
  if (pipeline_rank == grid.pipeline() - 1 && virtual_rank == grid.virtual_ranks() - 1)
    plan.end(grid.pipeline() > 1);
  return plan.take();
}

}  // namespace troupe::engine::checkpoint
