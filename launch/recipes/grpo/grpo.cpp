#include "launch/recipes/grpo/grpo.h"

#include "engine/base/text.h"
#include "launch/recipes/rewards/reward_models.h"
#include "launch/recipes/run_context.h"
#include "launch/recipes/sampling/sampling.h"
#include "launch/recipes/valid_loss.h"

namespace troupe::launch {
namespace {

bool compares(const GrpoConfig& g) {
  return g.beta != 0 || g.reward_beta != 0;
}

RolesNeeded roles(const RunConfig& config) {
  return {
      .reference = {compares(config.grpo),
                    "grpo compares with one only when grpo.beta or grpo.reward_beta is above 0"},
      .reward = reward_use(config),
      .rollout = {true},
      .verifier = verifier_use(config)};
}

std::string reference(const RunConfig& config) {
  return config.grpo.reference;
}

int run(RunContext& context) {
  auto settings = value_or_throw(grpo_settings(context.config()));
  value_or_throw(algorithms::resume(settings, context.algorithm_state()));
  auto data = context.loader<engine::data::PromptRow>(context.data_options(), settings.minibatches);
  auto actors = context.cluster();
  const auto plan =
      context.begin(data.batches(), std::int64_t{settings.epochs} * settings.minibatches);
  return context.run(algorithms::grpo(actors, data, plan, settings), plan);
}

Json loss_fields(const RunConfig& config) {
  const GrpoConfig& g = config.grpo;
  Json fields = Json::Object{};
  fields.set("policy_loss", g.policy_loss), fields.set("clip_low", g.clip_low),
      fields.set("clip_high", g.clip_high);
  fields.set("delta", g.delta), fields.set("dual_clip", g.dual_clip),
      fields.set("dro_beta", g.dro_beta);
  fields.set("sapo_temperature_pos", g.sapo_temperature_pos),
      fields.set("sapo_temperature_neg", g.sapo_temperature_neg);
  fields.set("vespo_k_pos", g.vespo_k_pos), fields.set("vespo_lambda_pos", g.vespo_lambda_pos);
  fields.set("vespo_k_neg", g.vespo_k_neg), fields.set("vespo_lambda_neg", g.vespo_lambda_neg);
  fields.set("cov_ratio", g.cov_ratio), fields.set("cov_low", g.cov_low),
      fields.set("cov_high", g.cov_high);
  fields.set("cov_kl", g.cov_kl), fields.set("proximal", g.proximal);
  fields.set("ratio", g.ratio), fields.set("log_ratio_limit", g.log_ratio_limit),
      fields.set("beta", g.beta), fields.set("kl", g.kl);
  fields.set("kl_clamp", g.kl_clamp), fields.set("kl_times_ratio", Json(g.kl_times_ratio)),
      fields.set("entropy_coef", g.entropy_coef);
  fields.set("top_entropy_quantile", g.top_entropy_quantile),
      fields.set("off_policy_mask", g.off_policy_mask);
  fields.set("correction", g.correction), fields.set("correction_outside", g.correction_outside);
  fields.set("correction_low", g.correction_low), fields.set("correction_high", g.correction_high);
  fields.set("filter", g.filter), fields.set("filter_by", g.filter_by),
      fields.set("filter_low", g.filter_low), fields.set("filter_high", g.filter_high);
  fields.set("aggregation", g.aggregation), fields.set("temperature", config.rollout.temperature);
  return fields;
}

// The enumerator called `word`; the first problem is kept.
template <class E>
void read_word(Result<>& done, const std::string& word, const char* key, E& into) {
  if (done) done = detail::read_field(Json(word), into, key);
}

Result<> set_words(const GrpoConfig& g, algorithms::AdvantageConfig& into) {
  Result<> done;
  read_word(done, g.estimator, "grpo.estimator", into.estimator),
      read_word(done, g.scale_rewards, "grpo.scale_rewards", into.scale);
  read_word(done, g.normalize_advantages, "grpo.normalize_advantages", into.normalise);
  read_word(done, g.variance, "grpo.variance", into.variance),
      read_word(done, g.reward_kl, "grpo.reward_kl", into.reward_kl);
  read_word(done, g.kl_clamp, "grpo.kl_clamp", into.reward_kl_clamp);
  return done;
}

algorithms::DynamicSampling dynamic_sampling(const GrpoConfig& g) {
  algorithms::DynamicSampling out{
      .on = g.dynamic_sampling, .max_refills = g.max_refills, .metric = g.dynamic_metric};
  if (g.dynamic_bounds.size() == 2) out.bounds = g.dynamic_bounds;
  return out;
}

}  // namespace

bool asks_policy_again(const RunConfig& config) {
  return config.grpo.recompute_old_logp || draws_in_8_bits(config);
}

Result<algorithms::GrpoConfig> grpo_settings(const RunConfig& config) {
  const GrpoConfig& g = config.grpo;
  const auto loss = valid_loss<algorithms::GrpoLoss>(loss_fields(config), "grpo");
  RETURN_IF_ERROR(loss);
  algorithms::GrpoConfig out;
  out.loss = *loss;
  out.group = static_cast<int>(g.group_size), out.epochs = static_cast<int>(g.epochs),
  out.minibatches = static_cast<int>(g.minibatches);
  out.mask_truncated = g.mask_truncated, out.constant_length = g.constant_length,
  out.recompute_old = asks_policy_again(config);
  out.counting.empty_sequences = g.count_empty_sequences;
  RETURN_IF_ERROR(set_words(g, out.advantage));
  Result<> schedule;
  read_word(schedule, g.entropy_schedule, "grpo.entropy_schedule", out.entropy.schedule);
  RETURN_IF_ERROR(schedule);
  out.entropy.target = g.entropy_target, out.entropy.delta = g.entropy_delta;
  out.entropy.least = g.entropy_coef_min, out.entropy.most = g.entropy_coef_max,
  out.entropy_bonus = g.entropy_coef;
  out.advantage.eps = g.advantage_eps, out.advantage.gamma = g.gamma,
  out.advantage.reward_beta = g.reward_beta;
  for (const RewardRule& rule : config.reward)
    if (g.normalize_each_reward)
      out.advantage.parts.emplace_back(rule.label.empty() ? rule.rule : rule.label, rule.weight);
  out.shaping = {g.overlong_buffer, g.overlong_factor, g.overlong_capped, g.truncated_scale, {}};
  out.shaping.score = {
      .scale = g.reward_scale, .clip = g.reward_clip, .missing_eos_penalty = g.missing_eos_penalty};
  out.dynamic = dynamic_sampling(g);
  out.sampling = sampling_settings(config);
  return out;
}

Recipe grpo_recipe() {
  return {"grpo",
          "group relative policy optimization: prefer the samples that are judged better than "
          "their group",
          {"grpo", "rollout", "reward"},
          grpo_fields(),
          engine::data::Purpose::prompts,
          roles,
          reference,
          judge_grpo,
          grpo_formula,
          run};
}

}  // namespace troupe::launch
