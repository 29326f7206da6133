// How the numbers of a reward model become rewards: of a whole sample (outcome), or of the steps of
// a solution (process). Pure functions; the model itself is in reward_models.h.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/protocol/reward.h"
#include "engine/data/encode.h"
#include "engine/data/experience.h"
#include "engine/data/text_encoder.h"
#include "engine/generate/generator.h"

namespace troupe::actors::roles {

/// (score - mean) / deviation, then held within [-clip, clip] where clip is not 0: OpenRLHF's
/// normalize_reward and reward_clip_range.
struct Normalization {
  double mean = 0, deviation = 1, clip = 0;
  double operator()(double score) const;
};

/// An outcome reward model: the score at a sample's last token, whether that is an end token or
/// where it was cut.
struct OutcomeScoring {
  Normalization normalization;
};

/// How the probabilities of the steps become the sample's one reward.
enum class Aggregation { min, mean, last, product };
constexpr std::array<std::string_view, 4> names_of(Aggregation) {
  return {"min", "mean", "last", "product"};
}
/// Of no step at all: 0.
double aggregate(Aggregation how, const std::vector<double>& steps);

/// A process reward model: the probability of a right step at each step's end. The completion's
/// text is cut at the separators (steps of white space alone are none) and tokenized as the model
/// was trained: prompt, then each step and its end, every piece alone.
struct ProcessScoring {
  Aggregation aggregation = Aggregation::min;
  std::string separator = "\n";  ///< ends a step of the completion
  std::int32_t right = 1;        ///< the class of a right step
  std::optional<engine::data::StepTokens>
      tokens;  ///< the placeholder dialect: the language head is read at the placeholder
  std::string step_end =
      "\n";  ///< what stands behind each step: the separator, or with a placeholder " ки\n"
  std::shared_ptr<const engine::data::TextEncoder> encoder;
  engine::generate::TextDecoder decode;  ///< ids to text, as the samples' texts were made
};

using RewardScoring = std::variant<OutcomeScoring, ProcessScoring>;

/// Errc::usage: a step_end that is no token, or one without the placeholder.
Result<> validate_scoring(const RewardScoring& scoring);

/// The steps of a completion: their texts, and the index into its tokens of the one that each
/// step's last character stands in.
struct Steps {
  std::vector<std::string> texts;
  std::vector<std::int32_t> ends;
};
Steps split_steps(const protocol::RewardRequest& sample, const ProcessScoring& scoring);

/// What a model is to read: the mask is 1 where a score is wanted, in the order of samples and
/// their steps.
struct ScoringBatch {
  engine::data::Experience batch;
  std::vector<std::vector<std::int32_t>>
      ends;  ///< [samples][steps] of process rewards: indices into the completions' tokens
  std::vector<std::string>
      failures;  ///< [samples] why one cannot be asked about (its text is no tokens); else empty
};
ScoringBatch scoring_batch(const std::vector<protocol::RewardRequest>& samples,
                           const RewardScoring& scoring);

/// `scores` [T, C], as engine::train::scores gives them for the query -> the model's part of
/// each sample's result. A score that is not finite is a failure.
std::vector<protocol::RewardResult> reward_results(const ScoringBatch& query,
                                                   const std::vector<float>& scores,
                                                   const RewardScoring& scoring,
                                                   const std::string& label, double weight);

/// Adds another judge's result on the same sample: rewards add up, and fail together.
void add(const protocol::RewardResult& more, protocol::RewardResult& result);

}  // namespace troupe::actors::roles
