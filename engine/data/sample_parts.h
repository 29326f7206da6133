// The texts of a sample with their roles, as the row has them: what the model is shown before a
// chat template and a tokenizer make one sequence of them.
#pragma once

#include <string>
#include <vector>

#include "engine/data/layouts/sample.h"

namespace troupe::engine::data {

/// One text of a sequence.
struct SamplePart {
  /// Of a message its role; else "prompt", "completion", "step", or "text" for a row that is one
  /// text.
  std::string role;
  std::string text;
  float weight = 0;                   ///< in the loss; 0: conditioned on only
  Json::Object members = {};          ///< of a message, without role, content and weight
  std::optional<std::int32_t> label;  ///< of a step; nullopt: it has none
};

/// The parts of the sequence that consists of the sample's prompt and `completion` (its own, the
/// rejected one, or null for the prompt alone). Empty for rows of token ids. `all_trained`: prompts
/// are trained on, too.
std::vector<SamplePart> parts_of(const Sample& sample, const Json& completion,
                                 bool all_trained = false);

}  // namespace troupe::engine::data
