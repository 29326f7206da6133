// Samples: from prompts to draws, and from what was drawn to a batch. Pure functions: no actor in
// sight.
#pragma once

#include <string>
#include <vector>

#include "algorithms/cluster.h"
#include "engine/base/fields.h"
#include "engine/data/loader/loader.h"

namespace troupe::algorithms {

using PromptBatch = engine::data::Batch<engine::data::PromptRow>;

/// What an algorithm that learns from its own samples says of drawing them.
struct DrawConfig {
  int group = 1;                ///< samples a prompt
  bool mask_truncated = false;  ///< samples cut at max_new_tokens are not trained on
  engine::generate::SamplingParams sampling;
  /// old_logp is asked of the policy; what the rollouts said becomes rollout_logp, for a
  /// correction. Always where rollouts draw from other weights than the policy's, as a copy in 8
  /// bits is.
  bool recompute_old = false;
  int shown = 4;  ///< samples a step that the journal gets to see

  static void each_field(auto& self, auto&& field) {
    field("mask_truncated", self.mask_truncated,
          "do not train on samples truncated at rollout.max_new_tokens");
  }
};

/// Samples in the order of their prompts, `group` to each, with what became of them.
struct Sampled {
  engine::data::Experience batch;
  std::vector<protocol::Completion> drawn;       ///< [N]
  std::vector<protocol::RewardResult> verdicts;  ///< [N]
  Metrics metrics;                               ///< of the whole round
};

/// It ran into the length allowed.
bool truncated(const protocol::Completion& drawn);

/// group draws a prompt. The sample id is the prompt's own id times group plus the place in the
/// group: the same after a restart.
std::vector<protocol::SampleRequest> draws_for(const PromptBatch& prompts, int group);
/// At most `parts` runs of nearly equal length, in order; none is empty.
std::vector<std::vector<protocol::SampleRequest>> split_draws(
    std::vector<protocol::SampleRequest> draws, std::size_t parts);

/// Prompt and completion of every sample as one sequence; the completion is trained on, unless it
/// was cut and cuts are masked. `drawn` are the samples from `first` on of those that draws_for()
/// asked for.
engine::data::Experience assemble(const PromptBatch& prompts,
                                  const std::vector<protocol::Completion>& drawn, std::size_t first,
                                  const DrawConfig& config);
/// One request for each of `completions`, for rules and reward models alike.
std::vector<protocol::RewardRequest> reward_requests(
    const PromptBatch& prompts, const std::vector<protocol::Completion>& completions,
    std::size_t first, const DrawConfig& config);

/// Writes the verdicts down: the rewards as a column, not-a-number where one failed; such a sample
/// is not trained on.
void accept(Sampled& sampled, std::vector<protocol::RewardResult> verdicts);

double trained_tokens(const engine::data::Experience& batch);
/// Names as TRL logs them: completions/{mean,min,max}_length, the same of terminated ones,
/// completions/clipped_ratio.
Metrics length_metrics(const Sampled& sampled);
/// rewards/RULE/{mean,std}; rewards/failed/KIND, how many samples a reward program failed at in a
/// way of docs/rewards.md (timeout, crash, malformed, flood, memory), where there were any.
Metrics part_metrics(const Sampled& sampled);

/// How far apart old_logp and rollout_logp are over the trained tokens, as a correction reports it
/// (losses/correction.h): sampling/sampling_logp_difference/{mean,max},
/// sampling/importance_sampling_ratio/{min,mean,max}. Nothing without a trained token.
Metrics mismatch_metrics(const engine::data::Experience& batch);

/// The first `count` samples, for a person to read.
void show(Journal& journal, std::int64_t step, const PromptBatch& prompts, const Sampled& sampled,
          int count);

}  // namespace troupe::algorithms
