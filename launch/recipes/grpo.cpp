#include "launch/recipes/grpo.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "launch/recipes/grpo_formula.h"
#include "launch/recipes/held_out.h"
#include "launch/recipes/off_policy.h"
#include "launch/recipes/rewards.h"
#include "launch/recipes/sampling.h"

namespace troupe::launch::recipes {
namespace {

using namespace algorithms;

constexpr std::string_view ratios_are_one =
    "every rollout is trained on once, so all ratios are exactly 1 (grpo.epochs, grpo.minibatches)";

std::int64_t updates_per_rollout(const GrpoConfig& g) {
  return std::max<std::int64_t>(1, std::int64_t{g.epochs} * g.minibatches);
}

bool trained_once(const GrpoConfig& g) {
  return updates_per_rollout(g) == 1;
}

RowUse grpo_rows(const config::RunConfig& config) {
  return {.batches = config.grpo.minibatches,
          .updates = updates_per_rollout(config.grpo),
          .samples = config.grpo.group};
}

RolesNeeded grpo_roles(const config::RunConfig& config) {
  return {.reference = {config.grpo.compares(),
                        "grpo uses a reference only if grpo.beta or grpo.reward_beta is above 0"},
          .reward = reward_use(config),
          .rollout = {true},
          .verifier = verifier_use(config)};
}

void validate_group(Validation& v) {
  const GrpoConfig& g = v.config.grpo;
  const AdvantageConfig& a = g.advantage;
  const bool needs_group =
      a.estimator != Estimator::reinforce_pp && a.estimator != Estimator::remax;
  if (g.group == 1 && needs_group)
    v.problem(cat(v.named("grpo.group_size"),
                  ": advantages are relative to the group's mean, so a group of one learns nothing "
                  "(and with grpo.scale_rewards = ",
                  name_of(a.scale), " divides zero by zero); the nearest valid value is 2"));
  if (a.estimator == Estimator::loo_scaled && g.group == 2)
    v.problem(cat(v.named("grpo.group_size"),
                  ": loo_scaled divides by the standard deviation of the other samples of the "
                  "group, and a single one has none; the nearest valid value is 3"));
  if (a.estimator == Estimator::group && a.scale == GroupScale::group && g.group == 2)
    v.warn(cat(v.named("grpo.group_size"),
               ": two different rewards are always scaled to plus and minus 0.71, however small "
               "their difference"));
  if (g.normalize_each_reward && a.estimator != Estimator::group)
    v.problem(cat(v.named("grpo.normalize_each_reward"),
                  ": has a meaning for grpo.estimator = group only"));
  if (g.normalize_each_reward && v.config.reward.size() < 2)
    v.warn(cat(v.named("grpo.normalize_each_reward"), ": has no effect with one reward rule"));
}

void warn_of_unused_advantage_keys(Validation& v) {
  const AdvantageConfig& a = v.config.grpo.advantage;
  if (a.estimator != Estimator::group)
    v.unused("grpo.scale_rewards", cat("grpo.estimator is ", name_of(a.estimator)));
  if (a.estimator != Estimator::reinforce_pp)
    v.unused("grpo.gamma", "only grpo.estimator reinforce_pp discounts");
  if (a.normalise != Normalise::tokens)
    v.unused("grpo.variance", "grpo.normalize_advantages is not tokens");
}

void validate_kl_terms(Validation& v) {
  const double beta = v.config.grpo.loss.beta;
  const double reward_beta = v.config.grpo.advantage.reward_beta;
  if (beta == 0) v.unused({"grpo.kl", "grpo.kl_times_ratio"}, "grpo.beta is 0");
  if (reward_beta == 0) v.unused("grpo.reward_kl", "grpo.reward_beta is 0");
  if (beta == 0 && reward_beta == 0)
    v.unused({"grpo.reference", "grpo.kl_clamp"}, "grpo.beta and grpo.reward_beta are 0");
  if (beta != 0 && reward_beta != 0)
    v.warn(
        "grpo.beta, grpo.reward_beta: the KL penalty is applied twice, in the loss and in the "
        "reward");
}

bool clips_both_sides(SurrogateKind kind) {
  return kind == SurrogateKind::clip || kind == SurrogateKind::clip_cov ||
         kind == SurrogateKind::cispo_band || kind == SurrogateKind::gmpo ||
         kind == SurrogateKind::dppo_tv;
}

void validate_clipping(Validation& v) {
  const GrpoConfig& g = v.config.grpo;
  const Surrogate& s = g.loss.surrogate;
  const bool clips = clips_both_sides(s.kind);
  const bool all_ones = trained_once(g) && !recomputes_old_logp(v.config);
  const bool by_sequence =
      g.loss.ratio == RatioLevel::sequence || g.loss.ratio == RatioLevel::sequence_token;
  if (!clips)
    v.unused("grpo.clip_low", cat("grpo.policy_loss ", name_of(s.kind), " has no lower bound"));
  if (!clips && s.kind != SurrogateKind::cispo)
    v.unused("grpo.clip_high", cat("grpo.policy_loss is ", name_of(s.kind)));
  if (s.kind == SurrogateKind::cispo && s.clip_high < 1)
    v.warn(cat(v.named("grpo.clip_high"),
               ": policy_loss cispo uses it as the maximum weight itself, so even an on-policy "
               "token, of weight 1, is clipped to it; 5 is recommended"));
  if (s.clip_low == 1 && clips)
    v.warn(cat(v.named("grpo.clip_low"), ": ratios are never clipped from below"));
  if (all_ones && clips)
    v.unused({"grpo.clip_low", "grpo.clip_high", "grpo.delta", "grpo.dual_clip"}, ratios_are_one);
  if (by_sequence && s.clip_low >= 0.1 && clips && !all_ones)
    v.warn(
        cat(v.named("grpo.clip_low"),
            ": sequence ratios stay near 1, so this never clips; GSPO uses 3e-4 with a clip_high "
            "of 4e-4"));
}

void validate_surrogate(Validation& v) {
  const Surrogate& s = v.config.grpo.loss.surrogate;
  const bool clip_cov = s.kind == SurrogateKind::clip_cov;
  const bool kl_cov = s.kind == SurrogateKind::kl_cov;
  if (s.kind != SurrogateKind::sapo)
    v.unused("grpo.sapo_temperature_pos", "grpo.policy_loss is not sapo");
  if (s.kind != SurrogateKind::dro) v.unused("grpo.dro_beta", "grpo.policy_loss is not dro");
  if (!clip_cov && !kl_cov)
    v.unused("grpo.cov_ratio", "grpo.policy_loss is neither clip_cov nor kl_cov");
  if (!clip_cov) v.unused({"grpo.cov_low", "grpo.cov_high"}, "grpo.policy_loss is not clip_cov");
  if (!kl_cov) v.unused("grpo.cov_kl", "grpo.policy_loss is not kl_cov");
  if (kl_cov && trained_once(v.config.grpo))
    v.warn(cat(v.named("grpo.policy_loss"), ": ", ratios_are_one,
               " and the penalty on |log ratio| has no effect"));
}

void validate_entropy(Validation& v) {
  const GrpoConfig& g = v.config.grpo;
  const double coef = g.loss.entropy_coef, min = g.entropy.min, max = g.entropy.max;
  if (!g.entropy.adaptive()) {
    v.unused({"grpo.entropy_target", "grpo.entropy_delta", "grpo.entropy_coef_min",
              "grpo.entropy_coef_max"},
             "grpo.entropy_schedule is fixed");
    if (coef < 0)
      v.warn(cat(v.named("grpo.entropy_coef"), ": a negative coefficient penalizes entropy"));
    return;
  }
  if (!(min < max) || coef < min || coef > max)
    v.problem(
        cat(v.named("grpo.entropy_coef"),
            ": expected grpo.entropy_coef_min <= entropy_coef <= grpo.entropy_coef_max, found ",
            to_text(min), " and ", to_text(max)));
}

void validate_shaping(Validation& v) {
  const GrpoConfig& g = v.config.grpo;
  const Shaping& s = g.shaping;
  if (s.overlong_buffer > 0 &&
      s.overlong_buffer >= static_cast<double>(v.config.rollout.sampling.max_new_tokens))
    v.problem(cat(v.named("grpo.overlong_buffer"),
                  ": every answer would be penalized; expected less than ",
                  v.named("rollout.max_new_tokens"), ", a fifth of it is usual"));
  if (s.overlong_buffer == 0)
    v.unused({"grpo.overlong_factor", "grpo.overlong_capped"}, "grpo.overlong_buffer is 0");
  if (g.mask_truncated &&
      (s.overlong_buffer > 0 || s.truncated_scale != 1 || s.score.missing_eos_penalty != 0))
    v.warn(cat(v.named("grpo.mask_truncated"),
               ": truncated answers are not trained on, so a penalty affects them only through "
               "their group's mean"));
}

void validate_dynamic_sampling(Validation& v) {
  const GrpoConfig& g = v.config.grpo;
  const auto& bounds = g.dynamic.bounds;
  if (!g.dynamic.on)
    return v.unused({"grpo.max_refills", "grpo.dynamic_bounds", "grpo.dynamic_metric"},
                    "grpo.dynamic_sampling is off");
  if (g.group == 1)
    v.problem(cat(v.named("grpo.dynamic_sampling"),
                  ": a group of one sample always has equal rewards, so every rollout would be "
                  "refilled forever; grpo.group_size of at least 2 is needed"));
  if (!bounds.empty() && (bounds.size() != 2 || !(bounds[0] < bounds[1])))
    v.problem(cat(v.named("grpo.dynamic_bounds"),
                  ": expected two numbers, the lower one first, such as [0, 1], or none"));
  if (v.config.train.batch_size * g.minibatches == 1)
    v.warn(cat(v.named("train.batch_size"),
               ": a rollout of one prompt is sampled again whenever its answers are all right or "
               "all wrong"));
  if (v.config.train.steps == 0)
    v.warn(
        "train.steps is 0, so steps are counted from train.epochs; dynamic sampling consumes "
        "prompts faster, and the run ends earlier");
}

void validate_grpo(Validation& v) {
  const GrpoConfig& g = v.config.grpo;
  config::RunConfig with_temperature = v.config;  // a wrong one is reported by rollout.temperature
  double& temperature = with_temperature.rollout.sampling.temperature;
  if (!(temperature > 0)) temperature = 1;
  v.check(grpo_settings(with_temperature));
  validate_group(v);
  warn_of_unused_advantage_keys(v);
  validate_kl_terms(v);
  validate_clipping(v);
  validate_surrogate(v);
  validate_entropy(v);
  const OldLogp old{.recomputed = recomputes_old_logp(v.config),
                    .set = g.recompute_old,
                    .approximated = g.loss.proximal != Proximal::given};
  validate_proximal(v, "grpo", old, trained_once(g) && !v.config.async.stale(),
                    g.loss.correction.any());
  validate_correction(v, "grpo", g.loss.correction, old);
  validate_shaping(v);
  validate_dynamic_sampling(v);
  if (g.constant_length > 0 && g.loss.aggregation != Aggregation::constant)
    v.problem(cat(v.named("grpo.constant_length"),
                  ": has a meaning for grpo.aggregation = dr_grpo only"));
  const std::int64_t updates = updates_per_rollout(g);
  if (v.config.train.steps % updates != 0)
    v.warn(cat(v.named("train.steps"), ": one batch of samples makes ", updates,
               " steps (grpo.epochs x grpo.minibatches), so the last batch is used in part; a run "
               "that is extended later continues with new samples"));
  validate_weights(v);
  validate_serve(v);
  validate_rollout(v);
  validate_async(v, std::int64_t{g.minibatches} * g.group);
  validate_reward(v);
  validate_prompt_eval(v);
}

int run_grpo(RunContext& context) {
  const auto settings = value_or_throw(grpo_settings(context.config()));
  const RowUse use = grpo_rows(context.config());
  auto data = context.loader<engine::data::PromptRow>(context.data_options(), use.batches);
  auto held_out = held_out_prompts(
      context, context.config().train.batch_size * settings.minibatches * settings.group);
  auto actors = context.cluster();
  const auto plan = context.begin(data.batches(), use.updates);
  return context.run(
      grpo(actors, data, plan, settings, std::move(held_out), context.algorithm_state()), plan);
}

}  // namespace

bool recomputes_old_logp(const config::RunConfig& config) {
  return config.grpo.recompute_old || samples_have_other_logp(config);
}

Result<GrpoConfig> grpo_settings(const config::RunConfig& config) {
  GrpoConfig out = config.grpo;
  out.sampling = sampling_settings(config);
  out.async = config.async;
  out.external = config.rollout.source == config::SampleSource::service;
  out.max_reward_failures = config.rollout.max_reward_failures;
  const auto needed = reward_inputs(config);
  out.send_rows = needed.rows;
  out.whole_groups = needed.whole_groups;
  set_parity_sample(config, out);
  out.logged_completions = recorded_samples(config, out.logged_completions);
  out.loss.temperature = out.sampling.temperature;
  out.loss.masked = out.sampling.report_masks;
  out.recompute_old = recomputes_old_logp(config);
  RETURN_IF_ERROR(out.loss.validate());
  for (const config::RewardRule& rule : config.reward)
    if (out.normalize_each_reward)
      out.advantage.parts.emplace_back(rule.label.empty() ? rule.rule : rule.label, rule.weight);
  // One clamp for both KL terms.
  out.advantage.reward_kl_clamp = out.loss.kl_clamp;
  return out;
}

Recipe recipe_for(std::type_identity<algorithms::GrpoConfig>) {
  return {.name = "grpo",
          .summary =
              "group relative policy optimization: reinforce samples with rewards above "
              "their group's mean",
          .sections = {"grpo", "eval", "rollout", "async", "weights", "serve", "reward"},
          .rows = engine::data::Purpose::prompts,
          .roles = grpo_roles,
          .row_use = grpo_rows,
          .validate = validate_grpo,
          .formula = grpo_formula,
          .run = run_grpo,
          .reference = [](const config::RunConfig& config) { return config.grpo.reference; }};
}

}  // namespace troupe::launch::recipes
