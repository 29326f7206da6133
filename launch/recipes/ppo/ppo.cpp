#include "launch/recipes/ppo/ppo.h"

#include <algorithm>

#include "engine/base/text.h"
#include "launch/recipes/rewards/reward_models.h"
#include "launch/recipes/run_context.h"
#include "launch/recipes/sampling/sampling.h"
#include "launch/recipes/valid_loss.h"

namespace troupe::launch {
namespace {

RolesNeeded roles(const RunConfig& config) {
  RolesNeeded needed{.critic = {true},
                     .reward = reward_use(config),
                     .rollout = {true},
                     .verifier = verifier_use(config)};
  needed.reference = {config.ppo.kl_coef != 0,
                      "ppo compares with one only when ppo.kl_coef is above 0"};
  return needed;
}

std::string reference(const RunConfig& config) {
  return config.ppo.reference;
}

void judge_kl(Judging& j) {
  const PpoConfig& p = j.config.ppo;
  if (p.kl_coef == 0) {
    for (const char* key : {"ppo.kl", "ppo.kl_place", "ppo.kl_clamp", "ppo.reference"})
      j.unused(key, "not used, ppo.kl_coef is 0");
    if (p.kl_schedule == "adaptive")
      j.problem(
          cat(j.named("ppo.kl_schedule"),
              ": it multiplies ppo.kl_coef, which is 0 and stays so; 0.2 is a usual beginning"));
  }
  if (p.kl_schedule == "fixed")
    for (const char* key : {"ppo.kl_target", "ppo.kl_horizon"})
      j.unused(key, "not used, ppo.kl_schedule is fixed");
  if (p.kl_place == "reward" && p.kl.ends_with('+'))
    j.problem(cat(j.named("ppo.kl"), ": it differs from ", p.kl.substr(0, 2),
                  " in its gradient only, and a reward has none; set ppo.kl to ", p.kl.substr(0, 2),
                  " or ppo.kl_place to loss"));
  if (p.kl_place == "loss" && p.kl == "k1" && p.kl_coef != 0)
    j.warn(cat(j.named("ppo.kl"),
               ": in the loss the gradient of k1 is zero on average, whatever the distance; k2 or "
               "k3 pulls back"));
}

void judge_samples(Judging& j) {
  const PpoConfig& p = j.config.ppo;
  if (p.mask_truncated) {
    if (p.truncated == "value")
      j.unused("ppo.truncated", "not used, cut samples are not trained on (ppo.mask_truncated)");
    if (p.missing_eos_penalty != 0)
      j.unused("ppo.missing_eos_penalty",
               "not used, cut samples are not trained on (ppo.mask_truncated)");
  }
  if (p.truncated == "value" && p.missing_eos_penalty != 0)
    j.warn(cat(j.named("ppo.missing_eos_penalty"),
               ": beside ppo.truncated = value a cut sample is punished for its cut and paid for "
               "what would "
               "have come; one of them is usual"));
  if (p.credit == "sum") j.unused("ppo.credit_temperature", "not used, ppo.credit is sum");
  if (p.lambda == 0 && p.gamma == 0)
    j.problem(
        "ppo.gamma and ppo.lambda are 0: no token would ever hear of the score; 1 and 0.95 are "
        "usual");
}

// Minibatches cannot be uneven: a round has minibatches * batch_size prompts. Only its last steps
// may be cut.
void judge_steps(Judging& j) {
  const std::int64_t round = j.config.ppo.epochs * j.config.ppo.minibatches,
                     steps = j.config.train.steps;
  if (steps <= 0) return;
  if (const std::int64_t below = steps / round * round; below != steps)
    j.warn(cat(j.named("train.steps"), ": a round of samples makes ", round,
               " steps (ppo.epochs x ppo.minibatches), so the last is trained on ", "in part; ",
               below > 0 ? cat(below, " or ") : std::string(), below + round, " would not cut it"));
  const std::int64_t warmup = j.config.critic.warmup_rounds;
  if (warmup > 0 && warmup * round >= steps)
    j.problem(cat(j.named("critic.warmup_rounds"), ": the run has ", steps, " steps, ", round,
                  " a round, so the policy would never be trained; ", "at most ",
                  (steps - 1) / round, " is possible"));
}

void judge(Judging& j) {
  judge_kl(j), judge_samples(j), judge_steps(j);
  judge_rollout(j), judge_reward(j);
  if (j.config.critic.learning_rate == 0 && j.config.critic.model.empty())
    j.problem(cat(j.named("critic.learning_rate"),
                  ": the critic begins with values of 0 and would stay there; 1e-5 is usual"));
}

// The words among PPO's settings.
struct Words {
  algorithms::Untrained untrained{};
  algorithms::Bootstrap truncated{};
  algorithms::Variance variance{};
  algorithms::KlPlace kl_place{};
  algorithms::KlEstimator kl{};
  algorithms::KlClamp kl_clamp{};
  algorithms::KlSchedule kl_schedule{};
  algorithms::ScorePlace score_place{};
  algorithms::Credit credit{};
  static void each_field(auto& self, auto&& field) {
    field("untrained", self.untrained), field("truncated", self.truncated),
        field("variance", self.variance);
    field("kl_place", self.kl_place), field("kl", self.kl), field("kl_clamp", self.kl_clamp),
        field("kl_schedule", self.kl_schedule);
    field("score_place", self.score_place), field("credit", self.credit);
  }
};

Result<Words> words_of(const PpoConfig& p) {
  const Json fields = Json::Object{{"untrained", p.untrained},
                                   {"truncated", p.truncated},
                                   {"variance", p.variance},
                                   {"kl_place", p.kl_place},
                                   {"kl", p.kl},
                                   {"kl_clamp", p.kl_clamp},
                                   {"kl_schedule", p.kl_schedule},
                                   {"credit", p.credit},
                                   {"score_place", p.score_place}};
  return fields_from_json<Words>(fields, "ppo");
}

Result<algorithms::PpoLoss> policy_loss(const PpoConfig& p) {
  Json fields = Json::Object{};
  fields.set("clip_low", p.clip_low), fields.set("clip_high", p.clip_high),
      fields.set("dual_clip", p.dual_clip);
  fields.set("log_ratio_limit", p.log_ratio_limit), fields.set("aggregation", p.aggregation),
      fields.set("entropy_coef", p.entropy_coef);
  return valid_loss<algorithms::PpoLoss>(fields, "ppo");
}

int run(RunContext& context) {
  auto settings = value_or_throw(ppo_settings(context.config()));
  auto data = context.loader<engine::data::PromptRow>(context.data_options(), settings.minibatches);
  value_or_throw(algorithms::resume(settings, context.algorithm_state()));
  auto actors = context.cluster();
  const auto plan =
      context.begin(data.batches(), std::int64_t{settings.epochs} * settings.minibatches);
  const auto critic = value_or_throw(critic_plan(context.config(), plan.steps));
  return context.run(algorithms::ppo(actors, data, plan, critic, settings), plan);
}

}  // namespace

Result<algorithms::PpoConfig> ppo_settings(const RunConfig& config) {
  const PpoConfig& p = config.ppo;
  const auto words = words_of(p);
  RETURN_IF_ERROR(words);
  const auto loss = policy_loss(p);
  RETURN_IF_ERROR(loss);
  const algorithms::ValueLoss value{.clip = config.critic.value_clip,
                                    .huber = config.critic.huber,
                                    .coef = config.critic.loss_coef};
  RETURN_IF_ERROR(value.validate());
  algorithms::PpoConfig out;
  out.group = static_cast<int>(p.samples), out.mask_truncated = p.mask_truncated,
  out.sampling = sampling_settings(config);
  out.recompute_old = draws_in_8_bits(config);
  out.epochs = static_cast<int>(p.epochs), out.minibatches = static_cast<int>(p.minibatches);
  out.gae = {p.gamma, p.lambda, words->untrained};
  out.truncated = words->truncated, out.variance = words->variance;
  out.whiten_advantages = p.whiten_advantages, out.whiten_rewards = p.whiten_rewards;
  out.score = {p.score_scale, p.score_clip, p.missing_eos_penalty}, out.place = words->score_place;
  out.credit = words->credit, out.credit_temperature = p.credit_temperature,
  out.step_baseline = p.step_baseline;
  out.kl_coef = p.kl_coef, out.kl_place = words->kl_place, out.kl = words->kl,
  out.kl_clamp = words->kl_clamp;
  out.control = {words->kl_schedule, p.kl_target, p.kl_horizon};
  out.policy = *loss, out.value = value,
  out.critic_warmup = static_cast<int>(config.critic.warmup_rounds);
  return out;
}

Result<algorithms::CriticPlan> critic_plan(const RunConfig& config, std::int64_t steps) {
  const CriticConfig& c = config.critic;
  auto schedule = engine::optim::Schedule::create(
      c.schedule,
      {.total_steps = steps, .warmup_steps = c.warmup_steps, .min_ratio = c.min_lr_ratio});
  if (!schedule)
    return fail(schedule.error().code, cat("critic.schedule: ", schedule.error().what));
  return algorithms::CriticPlan{c.learning_rate, *schedule};
}

Recipe ppo_recipe() {
  return {"ppo",
          "proximal policy optimization: a critic says what each state is worth, tokens that did "
          "better are preferred",
          {"ppo", "critic", "rollout", "reward"},
          ppo_fields(),
          engine::data::Purpose::prompts,
          roles,
          reference,
          judge,
          ppo_formula,
          run};
}

std::vector<Preset> ppo_dialects() {
  return {{"trl",
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
            {"rollout.temperature", "0.7"}}},
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
            {"train.learning_rate", "1e-6"}}},
          {"openrlhf",
           "ppo",
           "OpenRLHF's defaults",
           {{"ppo.epochs", "1"},
            {"ppo.lambda", "1"},
            {"ppo.kl_coef", "0.01"},
            {"ppo.kl_clamp", "openrlhf"},
            {"ppo.variance", "biased"},
            {"ppo.untrained", "zero"},
            {"ppo.score_clip", "10"},
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
}

}  // namespace troupe::launch
