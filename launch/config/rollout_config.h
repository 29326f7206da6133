// The sections `rollout` and `reward` of a run file: sampling, and the rules that score samples.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json/fields.h"
#include "engine/base/json/json.h"
#include "engine/base/json/ranges.h"
#include "engine/generate/generator.h"

namespace troupe::launch::config {

/// Samples that samples.jsonl receives: the first of each step, or all.
enum class Record { shown, all };
constexpr std::array<std::string_view, 2> names_of(Record) {
  return {"shown", "all"};
}

/// Who makes the samples: the rollouts' own engine, or programs that use the server of the
/// rollouts.
enum class SampleSource { engine, service };
constexpr std::array<std::string_view, 2> names_of(SampleSource) {
  return {"engine", "service"};
}

/// Whether the trainer takes log-probabilities over the tokens that each token was sampled from.
/// automatic: where that changes them and the method and the other settings allow it.
enum class ReplayMask { automatic, on, off };
constexpr std::array<std::string_view, 3> names_of(ReplayMask) {
  return {"auto", "on", "off"};
}

struct RolloutConfig {
  engine::generate::SamplingParams sampling{.max_new_tokens = 256};
  engine::generate::GeneratorConfig generator;
  std::int64_t cache_tokens = 0;
  int threads = 0;
  Record record = Record::shown;
  SampleSource source = SampleSource::engine;
  std::int64_t lease_timeout = 600;
  std::int64_t max_leases = 0;
  std::vector<std::string> lease_keys;
  double max_reward_failures = 0;
  ReplayMask replay_sampling_mask = ReplayMask::automatic;
  std::int64_t mask_bytes = std::int64_t{1} << 30;
  double parity_sample = 0;

  static void each_field(auto& self, auto&& field) {
    engine::generate::SamplingParams::each_field(self.sampling, field);
    engine::generate::GeneratorConfig::each_field(self.generator, field);
    field("cache_tokens", self.cache_tokens, Range{0, 2147483632},
          "capacity of the KV cache in tokens; 0: rollout.max_sequences of train.max_length, at "
          "most 1 GiB but at least one sequence if that is set");
    field("threads", self.threads, Range{0, 1024},
          "threads of the rollouts in each process, beside the trainer's (in one process and under "
          "mpirun); 0: they take turns on the trainer's threads; never changes results");
    field("record", self.record,
          "samples in samples.jsonl, with token ids, log-probabilities and weight versions: the "
          "first four of each step (shown), or all");
    field("source", self.source,
          "engine: the rollouts sample; service: programs that use their server (serve.listen) "
          "make the samples and their rewards (agents.md)");
    field("replay_sampling_mask", self.replay_sampling_mask,
          "grpo and its relatives, ppo: the tokens that filters, bans and constraints left to "
          "sample from are stored with each sample, and the trainer normalizes over them, so that "
          "the policy that is trained is the one that sampled (grpo.md#sampling-masks); auto: on "
          "where they remove tokens, but off with compat, with penalties and beyond "
          "rollout.mask_bytes");
    field("mask_bytes", self.mask_bytes, Range{1, 1e15},
          "maximum bytes of the sampling masks of one batch, by their largest possible size");
    field(
        "parity_sample", self.parity_sample, Range{0, 1},
        "fraction of the sampled tokens, drawn from train.seed and the sample id, at whose places "
        "rollouts and policy are compared over tokens of the vocabulary before the update "
        "(metrics sampling/vocabulary_difference; grpo.md#comparison-over-the-vocabulary)");
    each_lease_field(self, field);
  }

  /// Of rollout.source service.
  static void each_lease_field(auto& self, auto&& field) {
    field("lease_timeout", self.lease_timeout, Range{1, 1 << 20},
          "rollout.source service: seconds after which the samples of a lease that have not "
          "arrived are leased again");
    field("max_leases", self.max_leases, Range{0, 1 << 20},
          "rollout.source service: prompts that one client (API key) has leased at a time; 0: an "
          "equal share of those that are offered for each key that may lease, all of them for "
          "the only one");
    field("lease_keys", self.lease_keys,
          "rollout.source service: names of the keys of serve.api_key_file that may lease samples, "
          "which includes the answers of the rows, and send them; empty: all keys");
    field("max_reward_failures", self.max_reward_failures, from_0_to_1,
          "share of a batch on which a reward program may fail twice; more end the run with exit "
          "code 11 before the batch is trained (rewards.md#failures)");
  }
};

/// One rule of a weighted sum (actors/roles/rules/rules.h has their names and options).
struct RewardRule {
  std::string rule;
  double weight = 1;
  std::string label;  ///< name in metrics; empty: the rule's name
  Json options;       ///< settings of the rule, an object, or null
  bool operator==(const RewardRule&) const = default;

  static void each_field(auto& self, auto&& field) {
    field("rule", self.rule, "name of the rule");
    field("weight", self.weight, "weight in the sum");
    field("label", self.label, "name in metrics");
  }
};

}  // namespace troupe::launch::config
