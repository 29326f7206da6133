#include "launch/recipes/ppo.h"

#include "engine/base/text/text.h"
#include "launch/recipes/held_out.h"
#include "launch/recipes/off_policy.h"
#include "launch/recipes/rewards.h"
#include "launch/recipes/sampling.h"

namespace troupe::launch::recipes {
namespace {

using namespace algorithms;

RowUse ppo_rows(const config::RunConfig& config) {
  const PpoConfig& p = config.ppo;
  return {.batches = p.minibatches,
          .updates = std::int64_t{p.epochs} * p.minibatches,
          .samples = p.group};
}

RolesNeeded ppo_roles(const config::RunConfig& config) {
  return {
      .reference = {config.ppo.kl_coef != 0, "ppo uses a reference only if ppo.kl_coef is above 0"},
      .critic = {true},
      .reward = reward_use(config),
      .rollout = {true},
      .verifier = verifier_use(config)};
}

void validate_ppo_kl(Validation& v) {
  const PpoConfig& p = v.config.ppo;
  const bool adaptive = p.control.schedule == KlSchedule::adaptive;
  const bool straight_through = p.kl == KlEstimator::k1_plus || p.kl == KlEstimator::k3_plus;
  if (p.kl_coef == 0) {
    v.unused({"ppo.kl", "ppo.kl_place", "ppo.kl_clamp", "ppo.reference"},
             "not used, ppo.kl_coef is 0");
    if (adaptive)
      v.problem(
          cat(v.named("ppo.kl_schedule"),
              ": it multiplies ppo.kl_coef, which is 0 and stays 0; 0.2 is a usual initial value"));
  }
  if (!adaptive)
    v.unused({"ppo.kl_target", "ppo.kl_horizon"}, "not used, ppo.kl_schedule is fixed");
  if (p.kl_place == KlPlace::reward && straight_through) {
    const std::string_view plain = name_of(p.kl).substr(0, 2);
    v.problem(cat(v.named("ppo.kl"), ": differs from ", plain,
                  " in its gradient only, and a reward has none; set ppo.kl to ", plain,
                  " or ppo.kl_place to loss"));
  }
  if (p.kl_place == KlPlace::loss && p.kl == KlEstimator::k1 && p.kl_coef != 0)
    v.warn(cat(v.named("ppo.kl"),
               ": in the loss the gradient of k1 is zero on average; use k2 or k3"));
}

void validate_ppo_samples(Validation& v) {
  const PpoConfig& p = v.config.ppo;
  constexpr std::string_view masked =
      "not used, truncated samples are not trained on (ppo.mask_truncated)";
  const bool bootstraps = p.truncated == Bootstrap::value;
  if (p.mask_truncated && bootstraps) v.unused("ppo.truncated", masked);
  if (p.mask_truncated && p.score.missing_eos_penalty != 0)
    v.unused("ppo.missing_eos_penalty", masked);
  if (bootstraps && p.score.missing_eos_penalty != 0)
    v.warn(cat(v.named("ppo.missing_eos_penalty"),
               ": with ppo.truncated = value a truncated sample is penalized for its truncation "
               "and rewarded for what would have followed; one of them is usual"));
  if (p.credit == Credit::sum) v.unused("ppo.credit_temperature", "not used, ppo.credit is sum");
  if (p.gae.lambda == 0 && p.gae.gamma == 0)
    v.problem(
        "ppo.gamma and ppo.lambda are 0: the score would reach no token but the last; 1 and 0.95 "
        "are usual");
  const Aggregation how = p.policy.aggregation;
  if (how == Aggregation::constant || how == Aggregation::token_sum)
    v.problem(
        cat(v.named("ppo.aggregation"), ": must be one of grpo, bnpo, dapo, seq-mean-token-sum"));
}

// Minibatches have equal sizes: a rollout has minibatches * batch_size prompts. Only the last
// rollout of a run may be used in part.
void validate_ppo_steps(Validation& v) {
  const std::int64_t updates = std::int64_t{v.config.ppo.epochs} * v.config.ppo.minibatches;
  const std::int64_t steps = v.config.train.steps;
  if (steps <= 0 || updates <= 0) return;
  if (const std::int64_t below = steps / updates * updates; below != steps)
    v.warn(cat(v.named("train.steps"), ": a rollout makes ", updates,
               " steps (ppo.epochs x ppo.minibatches), so the last is used in part; ",
               below > 0 ? cat(below, " or ") : std::string(), below + updates,
               " would use it fully"));
  const std::int64_t warmup = v.config.critic.warmup_rounds;
  if (warmup > 0 && warmup * updates >= steps)
    v.problem(cat(v.named("critic.warmup_rounds"), ": the run has ", steps, " steps, ", updates,
                  " per rollout, so the policy would never be trained; at most ",
                  (steps - 1) / updates, " is possible"));
}

void validate_ppo(Validation& v) {
  v.check(ppo_settings(v.config));
  validate_ppo_kl(v);
  validate_ppo_samples(v);
  validate_ppo_steps(v);
  const bool recomputes = v.config.ppo.recompute_old;
  const PpoLoss& loss = v.config.ppo.policy;
  const OldLogp old{.recomputed = recomputes || samples_have_other_logp(v.config),
                    .set = recomputes,
                    .approximated = loss.proximal != Proximal::given};
  const bool once = v.config.ppo.epochs * v.config.ppo.minibatches == 1;
  validate_proximal(v, "ppo", old, once && !v.config.async.stale(), loss.correction.any());
  validate_correction(v, "ppo", loss.correction, old);
  validate_weights(v);
  validate_serve(v);
  validate_rollout(v);
  validate_async(v, std::int64_t{v.config.ppo.minibatches} * v.config.ppo.group);
  validate_reward(v);
  validate_prompt_eval(v);
  if (v.config.critic.learning_rate == 0 && v.config.critic.model.empty())
    v.problem(cat(v.named("critic.learning_rate"),
                  ": the critic starts with values of 0 and would keep them; 1e-5 is usual"));
}

std::string ppo_average(const PpoConfig& p) {
  if (p.policy.aggregation == Aggregation::sequence)
    return "mean over samples of the mean over their tokens of l";
  if (p.policy.aggregation == Aggregation::token_global)
    return "sum over the tokens of the update of l  /  tokens of an update on average";
  if (p.policy.aggregation == Aggregation::sequence_sum)
    return "mean over samples of the sum over their tokens of l";
  return "mean over the tokens of the update of l";
}

std::string ppo_kl(const PpoConfig& p) {
  const bool straight_through = p.kl == KlEstimator::k1_plus || p.kl == KlEstimator::k3_plus;
  const std::string text = p.kl == KlEstimator::k1 || p.kl == KlEstimator::k1_plus ? "x"
                           : p.kl == KlEstimator::k2                               ? "x^2 / 2"
                           : p.kl == KlEstimator::abs                              ? "|x|"
                                                      : "(exp(-x) - 1 + x)";
  return straight_through ? cat(text, " (gradient of x^2 / 2)") : text;
}

std::string ppo_policy(const PpoConfig& p) {
  const Surrogate& s = p.policy.surrogate;
  std::string clipped = cat("- min(rho A, clip(rho, ", to_text(1 - s.clip_low), ", ",
                            to_text(1 + s.clip_high), ") A)");
  if (s.dual_clip > 0) clipped += cat(" (at most ", to_text(s.dual_clip), " |A| where A < 0)");
  if (p.kl_coef != 0 && p.kl_place == KlPlace::loss)
    clipped += cat(" + ", to_text(p.kl_coef), " ", ppo_kl(p));
  if (p.policy.entropy_coef != 0) clipped += cat(" - ", to_text(p.policy.entropy_coef), " H");
  return clipped;
}

std::string ppo_rewards(const PpoConfig& p) {
  std::string text = "r = ";
  if (p.kl_coef != 0 && p.kl_place == KlPlace::reward)
    text += cat("- ", to_text(p.kl_coef), " ", ppo_kl(p), " + ");
  text += p.place == ScorePlace::last ? "R at the last token" : "R one step after the end";
  if (p.score.missing_eos_penalty != 0)
    text += cat(" - ", to_text(p.score.missing_eos_penalty), " without an end token");
  text +=
      cat(" + process rewards", p.step_baseline != 0 ? cat(" - ", to_text(p.step_baseline)) : "",
          " at the ends of their steps");
  return text + (p.credit == Credit::min
                     ? cat(", weighted by softmax(-r / ", to_text(p.credit_temperature), ")")
                     : std::string());
}

std::string old_policy(const PpoConfig& p) {
  if (p.policy.proximal != Proximal::given)
    return cat(p.policy.proximal == Proximal::linear ? "a mean" : "a geometric mean",
               " of p and the rollout policy, by the versions of their weights");
  return p.recompute_old ? "the weights that the updates of a batch start from"
                         : "the weights that sampled t";
}

std::string ppo_formula(const config::RunConfig& config) {
  const PpoConfig& p = config.ppo;
  const config::CriticConfig& c = config.critic;
  std::string text = cat("L = ", ppo_average(p), "\nl = ", weight_factor(p.policy.correction),
                         filter_factor(p.policy.correction), ppo_policy(p),
                         "\nrho = p(t) / p_old(t), p_old: ", old_policy(p), "\n",
                         weight_definition(p.policy.correction));
  text += mask_formula(config);
  text += cat("A = sum over k of (", to_text(p.gae.gamma), " x ", to_text(p.gae.lambda),
              ")^k (r + ", to_text(p.gae.gamma), " V_next - V) of the k-th token on",
              p.whiten_advantages ? ", whitened over the batch\n" : "\n");
  text += ppo_rewards(p) + "\n";
  const std::string clip = to_text(c.loss.clip);
  const std::string clipped =
      cat("max((V - G)^2, (clip(V, V_old - ", clip, ", V_old + ", clip, ") - G)^2)");
  text += cat("critic: ", to_text(c.loss.coef), " x mean over the tokens of 1/2 ",
              c.loss.clip > 0 ? clipped : std::string("(V - G)^2"), ",  G = V_old + A",
              p.whiten_advantages ? " before whitening\n" : "\n");
  if (p.kl_coef != 0)
    text += cat("x = log p(t) - log p_ref(t),  p_ref: ",
                p.reference.empty() ? std::string("the initial weights") : p.reference, "\n");
  return text + reward_formula(config);
}

int run_ppo(RunContext& context) {
  auto settings = value_or_throw(ppo_settings(context.config()));
  const RowUse use = ppo_rows(context.config());
  auto data = context.loader<engine::data::PromptRow>(context.data_options(), use.batches);
  value_or_throw(algorithms::resume(settings, context.algorithm_state()));
  auto held_out = held_out_prompts(
      context, context.config().train.batch_size * settings.minibatches * settings.group);
  auto actors = context.cluster();
  const auto plan = context.begin(data.batches(), use.updates);
  const auto critic = value_or_throw(critic_plan(context.config(), plan.steps));
  return context.run(ppo(actors, data, plan, critic, settings, std::move(held_out)), plan);
}

}  // namespace

Result<PpoConfig> ppo_settings(const config::RunConfig& config) {
  PpoConfig out = config.ppo;
  RETURN_IF_ERROR(out.policy.validate());
  out.sampling = sampling_settings(config);
  out.async = config.async;
  out.max_reward_failures = config.rollout.max_reward_failures;
  const auto needed = reward_inputs(config);
  out.send_rows = needed.rows;
  out.whole_groups = needed.whole_groups;
  set_parity_sample(config, out);
  out.logged_completions = recorded_samples(config, out.logged_completions);
  out.recompute_old = config.ppo.recompute_old || samples_have_other_logp(config);
  out.value = config.critic.loss;
  out.critic_warmup = config.critic.warmup_rounds;
  return out;
}

Result<CriticPlan> critic_plan(const config::RunConfig& config, std::int64_t steps) {
  const config::CriticConfig& c = config.critic;
  auto schedule = engine::optim::Schedule::create(c.schedule, c.schedule_options(steps));
  if (!schedule)
    return fail(schedule.error().code, cat("critic.schedule: ", schedule.error().what));
  return CriticPlan{c.learning_rate, *schedule};
}

Recipe recipe_for(std::type_identity<algorithms::PpoConfig>) {
  return {.name = "ppo",
          .summary =
              "proximal policy optimization: a critic estimates the value of each state, and "
              "tokens with positive advantages are reinforced",
          .sections = {"ppo", "critic", "eval", "rollout", "async", "weights", "serve", "reward"},
          .rows = engine::data::Purpose::prompts,
          .roles = ppo_roles,
          .row_use = ppo_rows,
          .validate = validate_ppo,
          .formula = ppo_formula,
          .run = run_ppo,
          .reference = [](const config::RunConfig& config) { return config.ppo.reference; }};
}

}  // namespace troupe::launch::recipes
