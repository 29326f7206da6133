// LoraConfig: the configuration of a LoRA adapter, with PEFT's names, and its resolution for a
// model.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/models/spec.h"

namespace troupe::engine::adapter {

/// Modules by name, as PEFT matches them: a module's name or the end of it ("q_proj",
/// "self_attn.q_proj"); "all-linear", every linear layer but the output head; or, with characters
/// other than letters, digits, '_', '-' and '.', a regular expression over whole names.
using ModuleNames = std::vector<std::string>;

struct LoraConfig {
  ModuleNames targets{"all-linear"};
  ModuleNames exclude;
  std::vector<std::int64_t> layers;  ///< only in these layers; empty: in all
  int rank = 16;
  double alpha = 32;
  double dropout = 0;
  /// Scale by alpha / sqrt(rank) (Kalajdzievski 2023, arXiv:2312.03732), not alpha / rank.
  bool rslora = false;
  bool dora = false;  ///< magnitude vectors (Liu et al. 2024, arXiv:2402.09353)
  /// By module name, the end of it, or a regular expression: the first match is used.
  std::vector<std::pair<std::string, std::int64_t>> rank_pattern;
  std::vector<std::pair<std::string, double>> alpha_pattern;
  ModuleNames saved;  ///< modules_to_save: trained in full beside the adapter ("score")
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
