// The sections `rollout` and `reward` of a run file: how samples are drawn, and what they are
// worth.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/json.h"

namespace troupe::launch {

struct RolloutConfig {
  double temperature = 1;
  std::int64_t top_k = 0;  ///< 0: all
  double top_p = 1, min_p = 0;
  double repetition_penalty = 1, presence_penalty = 0;
  std::int64_t max_new_tokens = 256;
  std::vector<std::string> stop;
  std::int64_t max_sequences = 64;  ///< sequences decoded at the same time
  std::string weights = "full";     ///< full, int8
  std::int64_t cache_tokens = 0;    ///< room of the KV cache; 0: engine::generate::default_pages()
};

/// One rule of a weighted sum (actors/roles/rules/rules.h has their names and options).
struct RewardRule {
  std::string rule;
  double weight = 1;
  std::string label;  ///< the part's name in metrics; empty: the rule's
  Json options;       ///< the rule's own settings, an object, or null
  bool operator==(const RewardRule&) const = default;
};

}  // namespace troupe::launch
