#include "launch/recipes/sampling/sampling.h"

#include "actors/roles/rules/rules.h"
#include "engine/base/text.h"
#include "launch/recipes/rewards/reward_models.h"

namespace troupe::launch {

namespace {

constexpr Field rollout_table[] = {
    {"rollout.temperature",
     [](RunConfig& c) { return Slot(&c.rollout.temperature); },
     "sampling temperature",
     "",
     {0, 100}},
    {"rollout.top_k", [](RunConfig& c) { return Slot(&c.rollout.top_k); },
     "keep the k most likely tokens; 0: all", "", at_least_0},
    {"rollout.top_p",
     [](RunConfig& c) { return Slot(&c.rollout.top_p); },
     "keep the most likely tokens up to this probability",
     "",
     {0, 1, true}},
    {"rollout.min_p", [](RunConfig& c) { return Slot(&c.rollout.min_p); },
     "keep tokens at least this likely relative to the best", "", fraction},
    {"rollout.repetition_penalty", [](RunConfig& c) { return Slot(&c.rollout.repetition_penalty); },
     "above 1: logits of tokens already in the text shrink", "", above_0},
    {"rollout.presence_penalty",
     [](RunConfig& c) { return Slot(&c.rollout.presence_penalty); },
     "taken from the logits of tokens already sampled",
     "",
     {-100, 100}},
    {"rollout.max_new_tokens",
     [](RunConfig& c) { return Slot(&c.rollout.max_new_tokens); },
     "tokens of a sample at most",
     "",
     {1, 1 << 24}},
    {"rollout.stop", [](RunConfig& c) { return Slot(&c.rollout.stop); }, "texts that end a sample",
     "", any},
    {"rollout.max_sequences",
     [](RunConfig& c) { return Slot(&c.rollout.max_sequences); },
     "sequences decoded at the same time",
     "",
     {1, 1 << 16}},
    {"rollout.weights", [](RunConfig& c) { return Slot(&c.rollout.weights); },
     "full: samples are drawn from the weights as they are; int8: from a copy in 8 bits, for less "
     "memory and time; the policy is then "
     "asked "
     "for the log-probabilities that ratios start from, and sampling/sampling_logp_difference says "
     "how far the two are apart",
     "full|int8", any},
    {"rollout.cache_tokens", [](RunConfig& c) { return Slot(&c.rollout.cache_tokens); },
     "room of the KV cache in tokens; 0: rollout.max_sequences of train.max_length, at most 1 GiB, "
     "but always one where that is set",
     "", at_least_0},
};

constexpr Field reward_table[] = {
    {"reward", [](RunConfig& c) { return Slot(&c.reward); },
     "list of rules, summed by weight: {rule: "
     "exact_match|gsm8k|boxed|format|regex|length|command|model|process, weight, label, and the "
     "options of the rule}",
     "", any},
};

}  // namespace

std::span<const Field> rollout_fields() {
  return rollout_table;
}
std::span<const Field> reward_fields() {
  return reward_table;
}

void judge_rollout(Judging& j) {
  if (j.config.rollout.temperature == 0) {
    j.problem(cat(j.named("rollout.temperature"),
                  ": greedy samples of a prompt are all the same, so no advantage is ever above 0; "
                  "1 is usual"));
  }
}

void judge_reward(Judging& j) {
  const auto& reward = j.config.reward;
  if (reward.empty())
    return j.problem(cat("reward is not set; ", j.config.algorithm,
                         " needs at least one rule: --set reward=exact_match"));
  bool some = false;
  for (const RewardRule& rule : reward) some = some || rule.weight != 0;
  if (auto models = reward_items(j.config); !models) j.problem(models.error().what);
  const Json rules = reward_rules(j.config);
  if (!rules.array().empty())
    if (auto known = actors::rules::Rules::from_json(rules, "reward"); !known)
      j.problem(known.error().what);
  if (!some) j.problem("reward: every weight is 0, so every reward is 0");
}

bool draws_in_8_bits(const RunConfig& config) {
  return config.rollout.weights == "int8";
}

engine::generate::SamplingParams sampling_settings(const RunConfig& config) {
  const RolloutConfig& r = config.rollout;
  engine::generate::SamplingParams params;
  params.temperature = r.temperature, params.top_k = r.top_k, params.top_p = r.top_p,
  params.min_p = r.min_p;
  params.repetition_penalty = r.repetition_penalty, params.presence_penalty = r.presence_penalty;
  params.max_new_tokens = static_cast<std::int32_t>(r.max_new_tokens);
  params.stop_strings = r.stop;
  params.seed = static_cast<std::uint64_t>(config.train.seed);
  return params;
}

Json reward_rules(const RunConfig& config) {
  Json::Array list;
  for (const RewardRule& rule : config.reward) {
    if (is_model(rule)) continue;
    Json entry = Json().set("name", rule.rule).set("weight", rule.weight);
    if (!rule.label.empty()) entry.set("label", rule.label);
    if (!rule.options.is_null()) entry.set("options", rule.options);
    list.push_back(std::move(entry));
  }
  return list;
}

std::string reward_formula(const RunConfig& config) {
  std::vector<std::string> parts;
  for (const RewardRule& rule : config.reward)
    parts.push_back(cat(to_text(rule.weight), " ", rule.rule));
  return cat("R = ", join(parts, " + "));
}

}  // namespace troupe::launch
