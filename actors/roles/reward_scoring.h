// Rewards from the scores of a reward model: of a whole sample (outcome), or of the steps of a
// solution (process). Pure functions; the model itself is in reward_models.h.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/protocol/reward.h"
#include "engine/data/experience.h"
#include "engine/data/layouts/encode.h"
#include "engine/data/layouts/text_encoder.h"
#include "engine/generate/generator.h"

namespace troupe::actors::roles {

/// (score - mean) / std_dev, then clipped to [-clip, clip] unless clip is 0: OpenRLHF's
/// normalize_reward and reward_clip_range.
struct Normalization {
  double mean = 0, std_dev = 1, clip = 0;
  double operator()(double score) const;
};

/// An outcome reward model: the score at a sample's last token, which is an end token or the token
/// at which the sample was truncated.
struct OutcomeScoring {
  Normalization normalization;
};

/// Aggregation of the probabilities of the steps to one reward.
enum class Aggregation { min, mean, last, product };
constexpr std::array<std::string_view, 4> names_of(Aggregation) {
  return {"min", "mean", "last", "product"};
}
/// Returns 0 for a sample without steps.
double aggregate(Aggregation how, const std::vector<double>& steps);

/// A process reward model: the probability of a correct step at each step's end. The completion is
/// split at the separators (steps of white space only are dropped) and tokenized as in the model's
/// training: prompt, then each step and its end, every piece separately.
struct ProcessScoring {
  Aggregation aggregation = Aggregation::min;
  std::string separator = "\n";  ///< ends a step of the completion
  std::int32_t right = 1;        ///< label of a correct step
  /// Models with placeholders: the language head is read at the placeholder.
  std::optional<engine::data::StepTokens> tokens;
  /// Text after each step: the separator, or with a placeholder " ки\n".
  std::string step_end = "\n";
  std::shared_ptr<const engine::data::TextEncoder> encoder;
  engine::generate::TextDecoder decode;  ///< decodes ids as for the samples' texts
};

using RewardScoring = std::variant<OutcomeScoring, ProcessScoring>;

/// Errc::usage for a step_end without tokens, or without the placeholder.
Result<> validate_scoring(const RewardScoring& scoring);

/// The steps of a completion: their texts, and the index of the token that contains each step's
/// last character.
struct Steps {
  std::vector<std::string> texts;
  std::vector<std::int32_t> ends;
};
Steps split_steps(const protocol::RewardRequest& sample, const ProcessScoring& scoring);

/// Input of a model: the mask is 1 where a score is read, in the order of samples and their steps.
struct ScoringBatch {
  engine::data::Experience batch;
  /// [samples][steps] of process rewards: indices into the completions' tokens.
  std::vector<std::vector<std::int32_t>> ends;
  /// [samples] the reason why a sample cannot be scored (its text cannot be tokenized), or "".
  std::vector<std::string> failures;
};
ScoringBatch scoring_batch(const std::vector<protocol::RewardRequest>& samples,
                           const RewardScoring& scoring);

/// Returns the model's part of each sample's result. `scores` [T, C] are those of
/// engine::train::scores for the batch. A score that is not finite is a failure.
std::vector<protocol::RewardResult> reward_results(const ScoringBatch& query,
                                                   const std::vector<float>& scores,
                                                   const RewardScoring& scoring,
                                                   const std::string& label, double weight);

/// Adds another result for the same sample, of a model or of rules: rewards are added, a failure of
/// one is a failure of both, and one that does not apply adds its parts only (TRL's nansum over
/// reward functions).
void add(const protocol::RewardResult& more, protocol::RewardResult& result);

}  // namespace troupe::actors::roles
