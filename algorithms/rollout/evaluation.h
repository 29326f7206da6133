// Evaluation by sampling: the rewards of completions of held-out prompts, which are never trained
// on. It does not change the training of a run: samples depend on (seed, sample id) only.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/rollout/sampling.h"
#include "algorithms/training/cluster.h"

namespace troupe::algorithms {

/// The most completions of one held-out prompt.
inline constexpr std::int64_t max_eval_samples = 1 << 16;

/// Held-out prompts of a run, and how they are sampled.
struct HeldOutPrompts {
  std::vector<engine::data::PromptRow> rows;
  /// Steps between evaluations; 0: only before the first and after the last step.
  std::int64_t every = 0;
  int samples = 1;  ///< completions per prompt
  engine::generate::SamplingParams sampling;
  double pass_reward = 1;                        ///< a completion passes with at least this reward
  std::int64_t samples_at_once = 1;              ///< at least; does not change results
  bool send_rows = false, whole_groups = false;  ///< as in RolloutOptions

  /// True when an evaluation is due after step `step` of `steps`. `previous`: the last step before
  /// which this was asked.
  bool due(std::int64_t previous, std::int64_t step, std::int64_t steps) const {
    return !rows.empty() && (step == steps || (every > 0 && step / every > previous / every));
  }
};

/// The prompts of rows [first, first + count), with ids under which sample k of a row is the same
/// in every evaluation with the same seed, and is no sample of the training.
PromptBatch eval_prompts(const std::vector<engine::data::PromptRow>& rows, std::size_t first,
                         std::size_t count);
/// The options for sampling such prompts.
RolloutOptions eval_rollout_options(const HeldOutPrompts& held_out);

/// True if the completion has a reward of at least `pass_reward`; a failed reward does not pass.
bool passes(const protocol::RewardResult& result, double pass_reward);

/// Metrics of all held-out completions, `samples` per prompt: eval/reward, the mean; the metrics of
/// its parts as in training (eval/rewards/RULE/mean, eval/rewards/failed/KIND); eval/pass@K; the
/// lengths (eval/completions/mean_length).
Metrics evaluation_metrics(const RolloutBatch& all, const HeldOutPrompts& held_out);

/// Samples and rewards all held-out prompts.
Task<Metrics> evaluate_prompts(Sampling from, const HeldOutPrompts& held_out);

/// Before the first step of a run: evaluates and records step 0, if there are held-out prompts.
Task<void> evaluate_initial(Cluster& c, const HeldOutPrompts& held_out, std::int64_t done);

/// Sends the policy's weights, trained on `batches` batches, to the rollouts, evaluates, and
/// appends to `metrics`.
Task<void> add_evaluation(Cluster& c, const HeldOutPrompts& held_out, std::int64_t batches,
                          Metrics& metrics);

}  // namespace troupe::algorithms
