// LoraConfig: the configuration of a LoRA adapter, with PEFT's names, and its resolution for a
// model.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/json/fields.h"
#include "engine/models/spec.h"

namespace troupe::engine::adapter {

/// Modules by name, as PEFT matches them: a module's name or the end of it ("q_proj",
/// "self_attn.q_proj"); "all-linear", every linear layer but the output head; or, with characters
/// other than letters, digits, '_', '-' and '.', a regular expression over whole names.
using ModuleNames = std::vector<std::string>;

struct LoraConfig {
  ModuleNames targets{"all-linear"};
  ModuleNames exclude;
  /// Experts' projections that get one adapter for all experts of a layer, by the end of their
  /// names in transformers 5 (PEFT's target_parameters): "mlp.experts.gate_up_proj",
  /// "experts.down_proj".
  ModuleNames parameters;
  std::vector<std::int64_t> layers;  ///< only in these layers; empty: in all
  int rank = 16;
  double alpha = 32;
  double dropout = 0;
  /// Scale by alpha / sqrt(rank) (Kalajdzievski 2023, arXiv:2312.03732), not alpha / rank.
  bool rslora = false;
  bool dora = false;  ///< magnitude vectors (Liu et al. 2024, arXiv:2402.09353)
  /// Ranks and alphas by module name, the end of it, or a regular expression: the first match is
  /// used.
  std::vector<std::pair<std::string, std::int64_t>> rank_pattern;
  std::vector<std::pair<std::string, double>> alpha_pattern;
  ModuleNames saved;  ///< modules_to_save: trained in full beside the adapter ("score")

  static void each_field(auto& self, auto&& field) {
    field("rank", self.rank, Range{0, 1 << 16},
          "rank of the low-rank adapters; 0: train the whole model");
    field("alpha", self.alpha, at_least_0,
          "LoRA scaling: updates are multiplied by alpha / rank; 0: twice the "
          "rank");
    field("dropout", self.dropout, from_0_below_1, "dropout of the adapter's inputs in training");
    field("targets", self.targets,
          "modules that get an adapter: names or ends of names (q_proj), "
          "regular expressions over "
          "whole names, or all-linear (all but the output head)");
    field("exclude", self.exclude, "modules among them that get none, named the same way");
    field("parameters", self.parameters,
          "of a mixture of experts: mlp.experts.gate_up_proj, "
          "mlp.experts.down_proj, which get an "
          "adapter in the form of PEFT's target_parameters (docs/mixtures.md)");
    field("rslora", self.rslora, "scale by alpha / sqrt(rank) instead (rsLoRA)");
    field("dora", self.dora, "also train per-row magnitudes (DoRA)");
    field("rank_pattern", self.rank_pattern, Range{1, 1 << 16},
          "rank by module, such as {down_proj: 4}");
    field("alpha_pattern", self.alpha_pattern, above_0, "alpha by module");
  }
};

/// Resolves the target modules of a model, with the rank and scale of each. `where` starts every
/// message. Errc::usage: a name that matches no module (with the nearest name), no module at all, a
/// rank or alpha that is not positive; Errc::unsupported: an unsupported combination.
Result<models::LoraSpec> resolve_targets(const LoraConfig& config, const models::DecoderSpec& spec,
                                         const std::string& where);

/// Errc::unsupported for an adapter that can be used but not trained: dropout with magnitudes, or
/// on the output head.
Result<> check_trainable(const models::LoraSpec& lora);

/// Linear layers that can have an adapter, in the order of the weights; the output head last.
std::vector<std::string> linear_modules(const models::DecoderSpec& spec);

}  // namespace troupe::engine::adapter
