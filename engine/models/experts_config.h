// The readers of config.json that families with mixtures of experts share.
#pragma once

#include "engine/models/config_reader.h"
#include "engine/models/spec.h"
#include "engine/models/storage.h"

namespace troupe::engine::models {

/// Names of the fields of a family's mixtures, and their defaults.
struct ExpertNames {
  ConfigReader::Keys count = {"num_experts"}, chosen = {"num_experts_per_tok"},
                     inner = {"moe_intermediate_size"};
  std::int64_t default_count = 0, default_chosen = 0;  ///< 0: the field is required
  std::int64_t default_inner = 0;                      ///< 0: the inner width of the MLP
};

/// Sets spec.experts, after read_sizes(): number, choice and inner width of experts. The weights of
/// the chosen experts are their softmax scores.
ExpertsSpec& read_experts(ConfigReader& in, DecoderSpec& spec, const ExpertNames& names);

/// Sets Router::renormalize from "norm_topk_prob".
void read_norm_topk(ConfigReader& in, ExpertsSpec& experts, bool absent, double epsilon = 0);

/// Reads the router of DeepSeek-V3 (arXiv:2412.19437) and its layers: sigmoid scores, a choice
/// bias, groups, scale, shared experts, and the first layers without experts.
void read_deepseek_experts(ConfigReader& in, DecoderSpec& spec, ExpertsSpec& experts);

/// Layout of Mixtral: block_sparse_moe.experts.N.w1 (gate), w3 (up) and w2 (down).
Storage store_mixtral(const DecoderSpec& spec);

}  // namespace troupe::engine::models
