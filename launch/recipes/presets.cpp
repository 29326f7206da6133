#include "launch/recipes/presets.h"

#include <algorithm>
#include <array>

namespace troupe::launch::recipes {
namespace {

// A preset repeats a key that compat presets set only where the algorithm would otherwise not be
// itself.
const std::vector<Preset> grpo_variants = {
    {"dr_grpo",
     "grpo",
     "GRPO without its two biases: no division by lengths or standard deviations "
     "(arXiv:2503.20783)",
     {{"grpo.aggregation", "dr_grpo"}, {"grpo.scale_rewards", "none"}}},
    {"dapo",
     "grpo",
     "clip-higher, token mean and dynamic sampling; set grpo.overlong_buffer for its overlong "
     "shaping, a fifth of the length in the paper (arXiv:2503.14476)",
     {{"grpo.aggregation", "dapo"},
      {"grpo.clip_high", "0.28"},
      {"grpo.dynamic_sampling", "true"},
      {"grpo.beta", "0"}}},
    {"gspo",
     "grpo",
     "importance ratios of whole sequences with a narrow clip (arXiv:2507.18071)",
     {{"grpo.ratio", "sequence"},
      {"grpo.aggregation", "grpo"},
      {"grpo.clip_low", "3e-4"},
      {"grpo.clip_high", "4e-4"},
      {"grpo.beta", "0"}}},
    {"cispo",
     "grpo",
     "importance weights clipped above instead of tokens dropped (arXiv:2506.13585); TRL's form, "
     "with its recommended bound",
     {{"grpo.policy_loss", "cispo"},
      {"grpo.clip_high", "5"},
      {"grpo.aggregation", "dapo"},
      {"grpo.dual_clip", "0"}}},
    {"sapo",
     "grpo",
     "a smooth gate instead of clipping (arXiv:2511.20347); TRL's temperatures",
     {{"grpo.policy_loss", "sapo"}, {"grpo.aggregation", "grpo"}, {"grpo.dual_clip", "0"}}},
    {"luspo",
     "grpo",
     "GSPO without its bias against long answers: sequences are weighted by their length; the "
     "paper's clipping (arXiv:2602.05261)",
     {{"grpo.ratio", "sequence"},
      {"grpo.aggregation", "seq-mean-token-sum"},
      {"grpo.clip_low", "2e-3"},
      {"grpo.clip_high", "2.5e-3"}}},
    {"vespo",
     "grpo",
     "whole answers weighted by a smooth function of their ratio (arXiv:2602.10693); TRL's "
     "exponents",
     {{"grpo.policy_loss", "vespo"}, {"grpo.aggregation", "dapo"}, {"grpo.dual_clip", "0"}}},
    {"rloo",
     "grpo",
     "REINFORCE against the mean of the group's others, KL in the reward (arXiv:2402.14740); TRL's "
     "defaults",
     {{"grpo.estimator", "rloo"},
      {"grpo.ratio", "sequence_sum"},
      {"grpo.aggregation", "grpo"},
      {"grpo.group_size", "2"},
      {"grpo.reward_beta", "0.05"},
      {"grpo.reward_kl", "k1"}}},
    {"reinforce_pp",
     "grpo",
     "REINFORCE++: one sample per prompt, reward-to-go with a KL penalty at each token, whitened "
     "over the batch (arXiv:2501.03262); OpenRLHF's coefficient",
     {{"grpo.estimator", "reinforce_pp"},
      {"grpo.group_size", "1"},
      {"grpo.normalize_advantages", "tokens"},
      {"grpo.aggregation", "bnpo"},
      {"grpo.reward_beta", "0.01"},
      {"grpo.reward_kl", "k1"}}},
    {"reinforce_pp_baseline",
     "grpo",
     "REINFORCE++ with the group's mean as baseline, whitened over the batch (arXiv:2501.03262)",
     {{"grpo.estimator", "group"},
      {"grpo.scale_rewards", "none"},
      {"grpo.normalize_advantages", "tokens"},
      {"grpo.aggregation", "bnpo"}}},
    {"remax",
     "grpo",
     "REINFORCE against the greedy answer's reward: one additional greedy sample per prompt "
     "(arXiv:2310.10505)",
     {{"grpo.estimator", "remax"}, {"grpo.group_size", "1"}, {"grpo.aggregation", "bnpo"}}},
};

const std::vector<Preset> compat_grpo = {{"trl",
                                          "grpo",
                                          "GRPOTrainer of TRL 1.16",
                                          {{"grpo.aggregation", "dapo"},
                                           {"lora.reference", "initial"},
                                           {"grpo.kl_times_ratio", "true"},
                                           {"grpo.advantage_eps", "1e-4"},
                                           {"grpo.count_empty_sequences", "true"},
                                           {"data.last_batch", "drop"}}},
                                         {"verl",
                                          "grpo",
                                          "verl's defaults",
                                          {{"grpo.aggregation", "bnpo"},
                                           {"grpo.kl_times_ratio", "false"},
                                           {"grpo.kl_clamp", "verl"},
                                           {"grpo.dual_clip", "3"},
                                           {"grpo.log_ratio_limit", "20"},
                                           {"grpo.advantage_eps", "1e-6"},
                                           {"grpo.count_empty_sequences", "false"},
                                           {"grpo.overlong_capped", "false"},
                                           {"data.last_batch", "drop"}}},
                                         {"openrlhf",
                                          "grpo",
                                          "OpenRLHF's defaults",
                                          {{"grpo.aggregation", "bnpo"},
                                           {"grpo.kl_times_ratio", "false"},
                                           {"grpo.kl_clamp", "openrlhf"},
                                           {"grpo.advantage_eps", "1e-9"},
                                           {"grpo.variance", "biased"},
                                           {"grpo.count_empty_sequences", "false"},
                                           {"grpo.reward_clip", "10"}}},
                                         {"mindspeed",
                                          "grpo",
                                          "MindSpeed-RL's defaults",
                                          {{"grpo.aggregation", "bnpo"},
                                           {"grpo.kl_times_ratio", "false"},
                                           {"grpo.kl_clamp", "verl"},
                                           {"grpo.advantage_eps", "1e-6"},
                                           {"grpo.count_empty_sequences", "false"}}}};

// transformers' Trainer ends an epoch with a short batch (dataloader_drop_last is false); TRL's
// RepeatSampler (GRPO) and PPOTrainer, and every data loader of verl, drop it. OpenRLHF and
// Megatron go on accumulating with rows of the next epoch.
const std::vector<Preset> compat_sft = {
    {"trl",
     "sft",
     "SFTTrainer of TRL 1.16",
     {{"data.chunk", "false"}, {"data.last_batch", "keep"}}},
    {"verl", "sft", "verl's SFT trainer", {{"data.last_batch", "drop"}}}};

const std::vector<Preset> compat_dpo = {
    {"trl",
     "dpo",
     "DPOTrainer of TRL 1.16",
     {{"train.learning_rate", "1e-6"},
      {"train.max_length", "1024"},
      {"lora.reference", "initial"},
      {"data.answer_start", "common"},
      {"data.last_batch", "keep"}}},
    {"openrlhf",
     "dpo",
     "OpenRLHF's train_dpo: conservative label smoothing",
     {{"dpo.loss", "cdpo"}, {"train.learning_rate", "9e-6"}}},
    {"mindspeed",
     "dpo",
     "MindSpeed's --stage dpo: conservative label smoothing, pref_ftx as a mean over answers",
     {{"dpo.loss", "cdpo"}, {"dpo.nll_mean", "answer"}}}};

const std::vector<Preset> compat_reference_free = {
    {"trl",
     "simpo",
     "CPOTrainer of TRL 1.16 with loss_type simpo, its likelihood term included",
     {{"simpo.beta", "0.1"},
      {"simpo.gamma", "0.5"},
      {"simpo.nll_weight", "1"},
      {"train.learning_rate", "1e-6"},
      {"train.max_length", "1024"},
      {"data.begin_token", "always"},
      {"data.end_token", "always"},
      {"data.last_batch", "keep"}}},
    {"mindspeed",
     "simpo",
     "MindSpeed's --stage simpo",
     {{"simpo.beta", "2.5"}, {"simpo.gamma_beta_ratio", "1.4"}, {"simpo.nll_mean", "answer"}}},
    {"trl",
     "cpo",
     "CPOTrainer of TRL 1.16",
     {{"train.learning_rate", "1e-6"},
      {"train.max_length", "1024"},
      {"data.begin_token", "always"},
      {"data.end_token", "always"},
      {"data.last_batch", "keep"}}},
    {"trl",
     "orpo",
     "ORPOTrainer of TRL 1.16",
     {{"train.learning_rate", "1e-6"},
      {"train.max_length", "1024"},
      {"data.begin_token", "always"},
      {"data.end_token", "always"},
      {"data.last_batch", "keep"}}}};

const std::vector<Preset> compat_kto = {{"trl",
                                         "kto",
                                         "KTOTrainer of TRL 1.16",
                                         {{"train.learning_rate", "1e-6"},
                                          {"train.max_length", "1024"},
                                          {"lora.reference", "initial"},
                                          {"data.last_batch", "keep"}}}};

const std::vector<Preset> compat_ppo = {{"trl",
                                         "ppo",
                                         "PPOTrainer of TRL (experimental)",
                                         {{"ppo.epochs", "4"},
                                          {"ppo.lambda", "0.95"},
                                          {"ppo.kl_coef", "0.05"},
                                          {"ppo.score_place", "after_end"},
                                          {"critic.value_clip", "0.2"},
                                          {"critic.loss_coef", "0.1"},
                                          {"critic.learning_rate", "3e-6"},
                                          {"critic.max_grad_norm", "0"},
                                          {"train.learning_rate", "3e-6"},
                                          {"train.max_grad_norm", "0"},
                                          {"rollout.temperature", "0.7"},
                                          {"data.last_batch", "drop"}}},
                                        {"verl",
                                         "ppo",
                                         "verl's defaults: no KL term, dual clip",
                                         {{"ppo.epochs", "1"},
                                          {"ppo.lambda", "1"},
                                          {"ppo.kl_coef", "0"},
                                          {"ppo.kl_clamp", "verl"},
                                          {"ppo.dual_clip", "3"},
                                          {"ppo.log_ratio_limit", "20"},
                                          {"critic.value_clip", "0.5"},
                                          {"critic.learning_rate", "1e-5"},
                                          {"train.learning_rate", "1e-6"},
                                          {"data.last_batch", "drop"}}},
                                        {"openrlhf",
                                         "ppo",
                                         "OpenRLHF's defaults",
                                         {{"ppo.epochs", "1"},
                                          {"ppo.lambda", "1"},
                                          {"ppo.kl_coef", "0.01"},
                                          {"ppo.kl_clamp", "openrlhf"},
                                          {"ppo.variance", "biased"},
                                          {"ppo.untrained", "zero"},
                                          {"ppo.reward_clip", "10"},
                                          {"critic.value_clip", "0.5"},
                                          {"critic.learning_rate", "9e-6"},
                                          {"train.learning_rate", "1e-6"}}},
                                        {"mindspeed",
                                         "ppo",
                                         "MindSpeed-LLM's Ray PPO",
                                         {{"ppo.epochs", "1"},
                                          {"ppo.lambda", "0.95"},
                                          {"ppo.score_place", "after_end"},
                                          {"critic.value_clip", "0.2"}}}};

const std::vector<Preset> compat_orm = {
    {"trl",
     "orm",
     "RewardTrainer of TRL 1.16",
     {{"train.learning_rate", "1e-4"}, {"train.max_length", "1024"}, {"data.last_batch", "keep"}}},
    {"openrlhf",
     "orm",
     "OpenRLHF's train_rm",
     {{"train.learning_rate", "9e-6"}, {"train.max_length", "512"}}},
    {"mindspeed", "orm", "MindSpeed's --stage orm", {{"orm.loss", "bradley_terry"}}}};

const std::vector<Preset> compat_prm = {
    {"trl",
     "prm",
     "PRMTrainer of TRL (experimental)",
     {{"prm.kind", "token_class"}, {"prm.float32", "true"}, {"data.last_batch", "keep"}}},
    {"openrlhf", "prm", "OpenRLHF's train_prm (removed in 0.11)", {{"prm.kind", "placeholder"}}},
    {"mindspeed", "prm", "MindSpeed's --stage prm", {{"prm.kind", "placeholder"}}}};

// With an adapter ten times the rate of the whole model, as in TRL's scripts of these methods and
// in "LoRA Without Regret" (Schulman et al. 2025). Methods in a row.
constexpr std::string_view rate = "train.learning_rate";
constexpr std::array method_table{
    MethodDefault{"pretrain", rate, "3e-4", "3e-4", "Touvron et al. 2023, LLaMA 7B"},
    MethodDefault{"sft", rate, "2e-5", "2e-4", "TRL: SFTConfig, scripts/sft.py"},
    MethodDefault{"dpo", rate, "1e-6", "1e-5",
                  "TRL: DPOConfig; Rafailov et al. 2023; 5e-7 in TRL's scripts/dpo.py"},
    MethodDefault{"simpo", rate, "1e-6", "1e-5",
                  "TRL: CPOConfig; 3e-7 to 1e-6 in Meng et al. 2024"},
    MethodDefault{"cpo", rate, "1e-6", "1e-5", "TRL: CPOConfig"},
    MethodDefault{"orpo", rate, "8e-6", "8e-5", "TRL: scripts/orpo.py; 1e-6 in ORPOConfig"},
    MethodDefault{"kto", rate, "1e-6", "1e-5",
                  "TRL: KTOConfig; 5e-7 to 5e-6 in Ethayarajh et al. 2024"},
    MethodDefault{"orm", rate, "1e-5", "1e-4",
                  "TRL: scripts/reward_modeling.py; 9e-6 in OpenRLHF and Ouyang et al. 2022"},
    MethodDefault{"prm", rate, "1e-5", "1e-4", "TRL: PRMConfig"},
    MethodDefault{"ppo", rate, "1e-6", "1e-5", "verl: actor.optim.lr; OpenRLHF; TRL has 3e-6"},
    MethodDefault{"ppo", "critic.learning_rate", "1e-5", "", "verl: critic.optim.lr"},
    MethodDefault{"grpo", rate, "1e-6", "1e-5", "TRL: GRPOConfig; verl: actor.optim.lr"},
};

}  // namespace

std::span<const MethodDefault> method_defaults() {
  return method_table;
}

std::span<const MethodDefault> method_defaults(std::string_view recipe) {
  const auto is_its = [&](const MethodDefault& each) { return each.method == recipe; };
  const auto begin = std::ranges::find_if(method_table, is_its);
  return {begin, std::find_if_not(begin, method_table.end(), is_its)};
}

std::span<const Preset> algorithm_presets() {
  return grpo_variants;
}

std::span<const Preset> compat_presets() {
  static const std::vector<Preset> table = [] {
    std::vector<Preset> all;
    for (const auto& presets : {compat_grpo, compat_sft, compat_dpo, compat_reference_free,
                                compat_kto, compat_ppo, compat_orm, compat_prm})
      all.insert(all.end(), presets.begin(), presets.end());
    return all;
  }();
  return table;
}

const Preset* find_preset(std::string_view algorithm) {
  for (const Preset& preset : algorithm_presets())
    if (preset.name == algorithm) return &preset;
  return nullptr;
}

const Preset* find_compat(std::string_view compat, std::string_view recipe) {
  for (const Preset& preset : compat_presets())
    if (preset.name == compat && preset.of == recipe) return &preset;
  return nullptr;
}

}  // namespace troupe::launch::recipes
