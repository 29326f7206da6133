// The comparison of a run that resumes with what it was created from
// (engine/checkpoint/identity.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/identity.h"

namespace troupe::launch::run {

/// Inputs that a run may get, lose and replace: their changes are reported.
inline constexpr std::string_view chat_template_part = "chat_template", eval_part = "eval.path";
/// A run may get a reference (grpo.beta above 0) or lose it, but not replace it.
inline constexpr std::string_view reference_part = "reference";

/// A difference that is reported.
struct Change {
  std::string key, was, now;
};

struct Comparison {
  /// What makes resuming impossible, a sentence each: another model, tokenizer, reference, reward
  /// model, adapter, data, seed, model_overrides.
  std::vector<std::string> rejected;
  std::vector<Change> changed;
};

/// Compares a record with the run as it is started now. A setting that only one of the two has (of
/// another version of troupe) is not compared.
Comparison compare(const engine::checkpoint::Identity& recorded,
                   const engine::checkpoint::Identity& now);

}  // namespace troupe::launch::run
