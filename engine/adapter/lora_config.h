// LoraConfig: the adapter that a user or an adapter_config.json asks for, in PEFT's words, before
// it meets a model.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/models/spec.h"

namespace troupe::engine::adapter {

/// Modules by name, as PEFT matches them: each of `names` is a module's name or its end ("q_proj",
/// "self_attn.q_proj"), "all-linear" is every linear layer but the output head; an entry with any
/// other sign than letters, digits, '_', '-' and '.' is a regular expression over whole names.
using ModuleNames = std::vector<std::string>;

struct LoraConfig {
  ModuleNames targets{"all-linear"};
  ModuleNames exclude;
  std::vector<std::int64_t> layers;  ///< only in these layers; empty: in all
  int rank = 16;
  double alpha = 32;
  double dropout = 0;
  bool rslora = false;  ///< scale alpha / sqrt(rank) (Kalajdzievski 2023, arXiv:2312.03732) instead
                        ///< of alpha / rank
  bool dora = false;    ///< magnitude vectors (Liu et al. 2024, arXiv:2402.09353)
  std::vector<std::pair<std::string, std::int64_t>>
      rank_pattern;  ///< by module name, its end, or a regular expression: the first that fits
  std::vector<std::pair<std::string, double>> alpha_pattern;
  ModuleNames saved;  ///< modules_to_save: trained whole beside the adapter, "score"
};

/// Which modules of this model the configuration names, with rank and scale of each. `where` starts
/// every message. Errc::usage: a name that fits no module (with the nearest), no module at all, a
/// rank or alpha that is not positive, what is not supported together.
Result<models::LoraSpec> settle(const LoraConfig& config, const models::DecoderSpec& spec,
                                const std::string& where);

/// Errc::unsupported for an adapter that can be used but not trained here: dropout with magnitudes,
/// or of the output head.
Result<> check_trainable(const models::LoraSpec& lora);

/// The linear layers that an adapter can have, in the order of the weights; the output head last,
/// where it is one.
std::vector<std::string> linear_modules(const models::DecoderSpec& spec);

}  // namespace troupe::engine::adapter
