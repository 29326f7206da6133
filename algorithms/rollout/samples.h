// Samples: conversion of prompts to requests and of completions to a batch. Pure functions, without
// actors.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/training/cluster.h"
#include "engine/base/json/fields.h"
#include "engine/data/loader/loader.h"
#include "engine/generate/weight_change.h"

namespace troupe::algorithms {

/// off: a batch is sampled, then trained. pinned: the samples of batch b, counted from 0, are those
/// of version max(0, b - eta) of the weights, whatever the timing. free: the rollouts take over new
/// weights as they arrive, also between two tokens of a sample.
enum class AsyncMode { off, pinned, free };
constexpr std::array<std::string_view, 3> names_of(AsyncMode) {
  return {"off", "pinned", "free"};
}

struct AsyncConfig {
  AsyncMode mode = AsyncMode::off;
  std::int64_t eta = 1;
  std::int64_t in_flight = 0;
  engine::generate::WeightChange change;  ///< free: of samples that are being generated

  bool on() const { return mode != AsyncMode::off; }
  bool free() const { return mode == AsyncMode::free; }
  /// True where samples come from older weights than those that are trained.
  bool stale() const { return on() && eta > 0; }

  static void each_field(auto& self, auto&& field) {
    field("mode", self.mode,
          "off: sample a batch, then train on it; pinned: sample further batches meanwhile, each "
          "with a fixed version of the weights, so that timing changes no result; free: the "
          "rollouts take over new weights as they arrive");
    field("eta", self.eta, Range{0, 1024},
          "pinned, free: maximum staleness; batch b is sampled with the weights after b - eta "
          "batches (free: or later ones)");
    field("in_flight", self.in_flight, Range{0, 1e12},
          "pinned, free: samples that are generated or rewarded at a time, at least one batch; 0: "
          "two batches");
    field("partial", self.change.partial,
          "free: samples that are being generated when new weights arrive continue with them, or "
          "restart from the prompt, once");
    field("cache", self.change.cache,
          "free: cached keys and values of these samples are kept, or recomputed with the new "
          "weights; log-probabilities are those of one version only if recomputed");
  }
};

using PromptBatch = engine::data::Batch<engine::data::PromptRow>;

/// Settings of sampling that all algorithms with rollouts share.
struct RolloutOptions {
  int group = 1;                ///< samples per prompt
  bool mask_truncated = false;  ///< samples truncated at max_new_tokens are not trained on
  engine::generate::SamplingParams sampling;
  /// The policy computes old_logp; the rollouts' values become rollout_logp, for a correction.
  /// Always set where rollouts sample from other weights than the policy's, such as an int8 copy.
  bool recompute_old = false;
  /// Share of a rollout's samples on which a reward program may fail (reward_failures.h).
  double max_reward_failures = 1;
  int logged_completions = 4;  ///< samples per step that the journal receives
  AsyncConfig async;           ///< the section `async`
  /// Sample ids from one prompt id to the next; 0: `group`.
  std::uint64_t ids_per_prompt = 0;
  /// Other programs make the samples and their rewards (actors/roles/rollout_service.h).
  bool external = false;
  /// Rules read the rows of the prompts, or need all samples of a prompt at a time.
  bool send_rows = false, whole_groups = false;
  /// Fraction of the sampled tokens that vocabulary_difference() draws, and the model's vocabulary.
  double parity_sample = 0;
  std::int64_t vocabulary = 0;

  static void each_field(auto& self, auto&& field) {
    field("mask_truncated", self.mask_truncated,
          "do not train on samples truncated at rollout.max_new_tokens");
    field("recompute_old_logp", self.recompute_old,
          "recompute the old log-probabilities with the policy; the rollouts' then serve the "
          "correction");
  }
};

/// Counts of dynamic sampling over all groups that were sampled for a batch, kept or not.
struct SamplingStats {
  std::int64_t groups = 0;   ///< sampled groups
  std::int64_t refills = 0;  ///< prompt batches beyond the first
  std::int64_t rewards = 0;  ///< samples with a reward
  double tokens = 0;         ///< of all samples, prompts included
  double reward_sum = 0;     ///< over these samples
};

/// The samples of one rollout step in the order of their prompts, `group` per prompt.
struct RolloutBatch {
  PromptBatch prompts;
  engine::data::Experience batch;                 ///< N sequences: prompt and completion
  std::vector<protocol::Completion> completions;  ///< [N]
  std::vector<protocol::RewardResult> rewards;    ///< [N]
  Metrics metrics;                                ///< of the whole batch
  SamplingStats stats;
  std::vector<double> baselines;  ///< [prompts] rewards of greedy answers (ReMax), or empty
  Json data_state;                ///< of the loader, after the prompts of this batch
  std::optional<double> epoch;    ///< of the loader, at the same place
};

/// True for a completion that reached the length limit.
bool truncated(const protocol::Completion& completion);

/// `group` requests per prompt. The sample id is the prompt's id times ids_per_prompt plus the
/// index in the group: the same after a restart.
std::vector<protocol::SampleRequest> sample_requests(const PromptBatch& prompts,
                                                     const RolloutOptions& options);
/// Errc::bad_input unless there is one completion for each of `sample_ids`, in their order, with a
/// log-probability and a version for each of its tokens.
Result<> check_answers(const std::vector<std::uint64_t>& sample_ids,
                       const std::vector<protocol::Completion>& completions);
/// Splits the requests into at most `parts` consecutive ranges of nearly equal length; none is
/// empty. `unit` consecutive requests stay together, and divide their number.
std::vector<std::vector<protocol::SampleRequest>> split_requests(
    std::vector<protocol::SampleRequest> requests, std::size_t parts, std::size_t unit = 1);

/// Prompt and completion of every sample as one sequence. The mask selects the tokens of the
/// completion that the policy sampled, or nothing where a truncated one is masked. `completions`
/// answer the requests from `first` on.
engine::data::Experience pack_samples(const PromptBatch& prompts,
                                      const std::vector<protocol::Completion>& completions,
                                      std::size_t first, const RolloutOptions& options);
/// One request for each of `completions`, for rules and reward models alike.
std::vector<protocol::RewardRequest> reward_requests(
    const PromptBatch& prompts, const std::vector<protocol::Completion>& completions,
    std::size_t first, const RolloutOptions& options);

/// The rewards that came with samples of other programs.
std::vector<protocol::RewardResult> sent_rewards(
    const std::vector<protocol::Completion>& completions);

/// Fills batch.reward, NaN where a reward failed; such a sample is not trained on.
void apply_rewards(RolloutBatch& samples);

double trained_tokens(const engine::data::Experience& batch);
/// Names as in TRL: completions/{mean,min,max}_length, the same of terminated completions,
/// completions/clipped_ratio. NaN where no completion is terminated.
Metrics length_metrics(const RolloutBatch& samples);
/// rewards/RULE/{mean,std}; rewards/failed/KIND, the number of samples with a failure of that kind
/// (docs/rewards.md), where there are any.
Metrics reward_part_metrics(const RolloutBatch& samples);

/// Difference of old_logp and rollout_logp over the trained tokens, as a correction reports it
/// (losses/correction.h): sampling/sampling_logp_difference/{mean,max},
/// sampling/importance_sampling_ratio/{min,mean,max}. Nothing without a trained token.
Metrics mismatch_metrics(const engine::data::Experience& batch);

/// Writes the first `count` samples to the journal.
void log_completions(Journal& journal, std::int64_t step, const RolloutBatch& samples, int count);

}  // namespace troupe::algorithms
