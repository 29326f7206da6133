// RunConfig: all settings of a run, section by section. Each section's struct defines its keys
// (engine/base/json/fields.h); initial values are the defaults. launch/recipes/resolve.h fills it
// from a file and --set.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "actors/roles/rules/rule.h"
#include "algorithms/methods.h"
#include "algorithms/training/weight_stream.h"
#include "engine/adapter/lora_config.h"
#include "engine/base/errors/error.h"
#include "engine/base/files/output_folder.h"
#include "engine/base/json/fields.h"
#include "engine/base/json/ranges.h"
#include "engine/base/text/text.h"
#include "engine/tokenizer/formats/transformers5.h"
#include "launch/config/data_config.h"
#include "launch/config/parallel_config.h"
#include "launch/config/recovery_config.h"
#include "launch/config/rollout_config.h"
#include "launch/config/train_config.h"
#include "launch/model/model_overrides.h"
#include "launch/serve/serve_config.h"

namespace troupe::launch::config {

/// Each level includes the ones before it.
enum class ProfileLevel { level0, level1, level2 };
constexpr std::array<std::string_view, 3> names_of(ProfileLevel) {
  return {"level0", "level1", "level2"};
}

struct ProfileConfig {
  bool enabled = false;
  std::int64_t step_start = 10, step_end = 12;  ///< [start, end); steps count from 1
  std::vector<std::int32_t> ranks{-1};
  ProfileLevel level = ProfileLevel::level0;
  bool with_cpu = false, with_stack = false, with_memory = false, record_shapes = false;
  std::string save_path;

  static void each_field(auto& self, auto&& field) {
    field("enabled", self.enabled,
          "profile some steps: write a trace and an operator table; also --profile, and each key "
          "below as an option (--profile-step-start)");
    field("step_start", self.step_start, count_from_1, "first profiled step; steps count from 1");
    field("step_end", self.step_end, count_from_1, "first step after the profiled ones");
    field("ranks", self.ranks, Range{-1, 1023}, "profiled ranks of each group; -1: all");
    field("level", self.level,
          "level0: operators; level1: also communication; level2: also hardware counters "
          "(instructions, cycles, cache misses)");
    field("with_cpu", self.with_cpu, "record CPU utilization of the process in each span");
    field("with_stack", self.with_stack,
          "record the phases around each operator (forward_backward, forward, head, ...), one "
          "table row each");
    field("with_memory", self.with_memory, "record tensor memory over time and its peak");
    field("record_shapes", self.record_shapes, "record operand shapes, one table row each");
    field("save_path", self.save_path, "output directory; empty: profile in output");
  }
};

/// Tools whose defaults a run can take (docs/compatibility.md).
enum class Compat { none, trl, verl, openrlhf, mindspeed };
constexpr std::array<std::string_view, 5> names_of(Compat) {
  return {"", "trl", "verl", "openrlhf", "mindspeed"};
}

/// The reference of a run that continues an adapter: the model without one, or the adapter as it
/// was.
enum class AdapterReference { base, initial };
constexpr std::array<std::string_view, 2> names_of(AdapterReference) {
  return {"base", "initial"};
}

struct LoraSection : engine::adapter::LoraConfig {
  LoraSection() {
    rank = 0;
    alpha = 0;
  }
  std::string adapter;
  AdapterReference reference = AdapterReference::base;
  std::int64_t seed = 0;

  static void each_field(auto& self, auto&& field) {
    LoraConfig::each_field(self, field);
    field("adapter", self.adapter,
          "directory of a PEFT adapter to start from, which defines rank and all else; empty: a "
          "new adapter");
    field("reference", self.reference,
          "reference of a run with lora.adapter, unless the method's section names one; base: the "
          "model without an adapter; initial: the model with that adapter as it was (a second copy "
          "of the model)");
    field("seed", self.seed, seed_range,
          "random seed of the adapter's initial weights and dropout");
  }
};

/// Held-out data: rows, whose loss is computed, or prompts, whose completions are rewarded.
struct EvalConfig {
  std::vector<std::string> path;
  std::int64_t every = 0;
  std::int64_t samples = 1;
  double temperature = automatic_temperature;
  double pass_reward = 1;

  /// Greedy for one completion per prompt, otherwise 1.
  static constexpr double automatic_temperature = -1;

  static void each_field(auto& self, auto&& field) {
    field("path", self.path,
          "held-out rows in the data's layout: file, folder, or list of them; their loss and "
          "metrics (grpo, ppo: the rewards of completions) are logged as eval/...");
    field("every", self.every, count_from_0,
          "evaluate every N steps; 0: only after the last step; grpo, ppo: also before the first");
    field("samples", self.samples, Range{1, algorithms::max_eval_samples},
          "grpo, ppo: completions per held-out prompt; eval/pass@K is reported for K = 1, 2, 4, "
          "... up to this");
    field("temperature", self.temperature, Range{automatic_temperature, 100},
          "grpo, ppo: sampling temperature of the evaluation; 0: greedy; -1: greedy if "
          "eval.samples is 1, otherwise 1; all else is as in rollout.*");
    field("pass_reward", self.pass_reward,
          "grpo, ppo: a completion passes (eval/pass@K) with at least this reward");
  }
};

/// Where the weights that pretraining starts from come from.
enum class InitialWeights { automatic, file, random };
constexpr std::array<std::string_view, 3> names_of(InitialWeights) {
  return {"auto", "file", "random"};
}

struct InitConfig {
  InitialWeights weights = InitialWeights::automatic;
  double std_dev = 0;
  bool scaled_output = true;

  static void each_field(auto& self, auto&& field) {
    field("weights", self.weights,
          "file: the weights of the model's directory; random: new ones, drawn from train.seed; "
          "auto: random if the directory has no weight files");
    field("std", self.std_dev, at_least_0,
          "standard deviation of random weights; 0: initializer_range of config.json, or 0.02");
    field("scaled_output", self.scaled_output,
          "divide the standard deviation of the output projections of attention and MLP by sqrt(2 "
          "L), where L is the number of layers");
  }
};

/// Whether a run records its samples and steps in a ledger (docs/reliability.md).
enum class LedgerUse { on, off };
constexpr std::array<std::string_view, 2> names_of(LedgerUse) {
  return {"on", "off"};
}

struct TimelineConfig {
  std::int64_t max_mib = 64;

  static void each_field(auto& self, auto&& field) {
    field("max_mib", self.max_mib, Range{0, 1 << 20},
          "maximum size of timeline.jsonl and timeline.jsonl.1 together, in MiB; older calls are "
          "dropped; 0: no timeline is written");
  }
};

struct RunConfig : algorithms::MethodSettings {
  std::string algorithm;
  Compat compat = Compat::none;
  std::string model;
  model::ModelOverrides model_overrides;
  std::string output;
  FileAccess output_mode = FileAccess::owner_only;
  std::string resume = "auto";
  LedgerUse ledger = LedgerUse::on;
  std::string chat_template;
  engine::tokenizer::TokenizerIds tokenizer_ids = engine::tokenizer::TokenizerIds::file;
  DataConfig data;
  TrainConfig train;
  ParallelConfig parallel;
  RoleParallelConfig reference_parallel, reward_parallel, rollout_parallel, critic_parallel;
  ProfileConfig profile;
  TimelineConfig timeline;
  RecoveryConfig recovery;
  LoraSection lora;
  InitConfig init;
  CriticConfig critic;
  EvalConfig eval;
  RolloutConfig rollout;
  algorithms::AsyncConfig async;
  algorithms::WeightsConfig weights;
  serve::ServeConfig serve;
  std::vector<RewardRule> reward;

  static void each_field(auto& self, auto&& field) {
    field("algorithm", self.algorithm, "training method; also --algorithm; required");
    field("compat", self.compat,
          "take the defaults of another tool, and its computation where tools differ "
          "(docs/compatibility.md); empty: the defaults below");
    field("model", self.model, "Hugging Face model directory to start from; required");
    field("model_overrides", self.model_overrides,
          "values in place of those of the model's config.json, which checkpoints get as well: "
          "{rope_theta: 1000000, rope_scaling: {rope_type: yarn, factor: 4}}, or one by one, "
          "model_overrides.KEY=VALUE; weights keep their shapes");
    field("output", self.output, "directory of the run: metrics, samples, checkpoints; required");
    field("output_mode", self.output_mode,
          "private: only the user can read configuration, metrics, samples and logs; umask: the "
          "umask decides, as it always does for checkpoints");
    field("resume", self.resume,
          "auto: resume from the newest checkpoint in output, if any; never: refuse to reuse an "
          "output directory; or a checkpoint directory");
    field("ledger", self.ledger,
          "on: ledger.db and ledger/ record every sample, step and checkpoint, for `troupe audit` "
          "(docs/reliability.md); off: nothing is recorded");
    field("chat_template", self.chat_template,
          "chat template file, the name of a MindSpeed prompt type (qwen, llama3, ...), or "
          "templates.json#NAME for one of its template files; empty: the model's own template");
    field("tokenizer_ids", self.tokenizer_ids,
          "ids of the class LlamaTokenizer (Llama 2 and models after it), which transformers 5 "
          "builds from the vocabulary; file: those of tokenizer.json, as in transformers 4; "
          "transformers5: its own, and checkpoints get a tokenizer.json that has them");
  }

  /// The sections, in the order of the reference page: that of the critic follows ppo, which alone
  /// reads it. `reward` is one key of its own.
  static void each_section(auto& self, auto&& section) {
    section("data", self.data);
    section("train", self.train);
    section("parallel", self.parallel);
    section("parallel.reference", self.reference_parallel);
    section("parallel.reward", self.reward_parallel);
    section("parallel.rollout", self.rollout_parallel);
    section("parallel.critic", self.critic_parallel);
    section("profile", self.profile);
    section("timeline", self.timeline);
    section("recovery", self.recovery);
    section("lora", self.lora);
    section("init", self.init);
    MethodSettings::each_method(self, [&]<class Method>(Method& settings) {
      section(Method::name, settings);
      if constexpr (std::is_same_v<std::remove_const_t<Method>, algorithms::PpoConfig>)
        section("critic", self.critic);
    });
    section("eval", self.eval);
    section("rollout", self.rollout);
    section("async", self.async);
    section("weights", self.weights);
    section("serve", self.serve);
    static const std::string rules = join(actors::rules::rule_names(), ", ");
    static const std::string reward_doc =
        cat("list of rules, summed by weight: {rule: exact_match, weight: 1, label: ..., and the "
            "options of the rule}; the rules are ",
            rules, ", model, process (docs/rewards.md)");
    section("reward", self.reward, reward_doc.c_str());
  }
};

/// `resume` that names no checkpoint: auto or never.
constexpr std::string_view resume_auto = "auto", resume_never = "never";
inline bool resume_is_automatic(const RunConfig& config) {
  return config.resume == resume_auto || config.resume == resume_never;
}

/// Origin of each value, by key: "default", "algorithm dapo", "compat verl", "run.yaml:7", "--set",
/// "--algorithm".
using Origins = std::map<std::string, std::string>;
constexpr std::string_view default_origin = "default", compat_origin = "compat ",
                           algorithm_origin = "algorithm ";

}  // namespace troupe::launch::config
