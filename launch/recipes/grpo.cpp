#include "launch/recipes/grpo.h"

#include <algorithm>

#include "engine/base/text.h"
#include "launch/recipes/sampling.h"
#include "launch/recipes/valid_loss.h"
#include "launch/run/stage.h"

namespace troupe::launch {
namespace {

constexpr Field table[] = {
    {"grpo.group_size", [](RunConfig& c) { return Slot(&c.grpo.group_size); }, "samples a prompt", "", {1, 4096}},
    {"grpo.beta", [](RunConfig& c) { return Slot(&c.grpo.beta); }, "KL coefficient; 0: no KL term and no reference model", "", at_least_0},
    {"grpo.kl", [](RunConfig& c) { return Slot(&c.grpo.kl); }, "estimator of the KL divergence from the reference", "k1|k2|k3|abs", any},
    {"grpo.kl_times_ratio", [](RunConfig& c) { return Slot(&c.grpo.kl_times_ratio); }, "multiply the KL estimate by the importance ratio",
     "", any},
    {"grpo.reference", [](RunConfig& c) { return Slot(&c.grpo.reference); }, "reference model's directory; empty: the starting weights", "",
     any},
    {"grpo.clip_low", [](RunConfig& c) { return Slot(&c.grpo.clip_low); }, "the importance ratio is clipped below 1 - clip_low", "",
     fraction},
    {"grpo.clip_high", [](RunConfig& c) { return Slot(&c.grpo.clip_high); }, "the importance ratio is clipped above 1 + clip_high", "",
     at_least_0},
    {"grpo.delta", [](RunConfig& c) { return Slot(&c.grpo.delta); }, "upper bound of the unclipped importance ratio; 0: none", "",
     at_least_0},
    {"grpo.ratio", [](RunConfig& c) { return Slot(&c.grpo.ratio); },
     "importance ratio of each token, of the sequence (its geometric mean; GSPO), the same with the gradient of single tokens "
     "(GSPO-token), or of the whole answer (RLOO)",
     "token|sequence|sequence_token|sequence_sum", any},
    {"grpo.entropy_coef", [](RunConfig& c) { return Slot(&c.grpo.entropy_coef); }, "weight of the entropy bonus", "", {-10, 10}},
    {"grpo.aggregation", [](RunConfig& c) { return Slot(&c.grpo.aggregation); },
     "mean over: grpo: sequences of their token means; bnpo: tokens of the update; dapo: tokens of all samples; dr_grpo: sequences, over a "
     "constant length",
     "grpo|bnpo|dapo|dr_grpo", any},
    {"grpo.constant_length", [](RunConfig& c) { return Slot(&c.grpo.constant_length); },
     "dr_grpo: the length divided by; 0: rollout.max_new_tokens", "", at_least_0},
    {"grpo.scale_rewards", [](RunConfig& c) { return Slot(&c.grpo.scale_rewards); },
     "divide advantages by the standard deviation of the group, of the batch, or not at all", "group|batch|none", any},
    {"grpo.epochs", [](RunConfig& c) { return Slot(&c.grpo.epochs); }, "passes over each batch of samples", "", {1, 1000}},
    {"grpo.minibatches",
     [](RunConfig& c) { return Slot(&c.grpo.minibatches); },
     "optimizer steps a pass, each of train.batch_size prompts",
     "",
     {1, 1 << 20}},
    {"grpo.mask_truncated", [](RunConfig& c) { return Slot(&c.grpo.mask_truncated); },
     "do not train on samples that ran into rollout.max_new_tokens", "", any},
};

RolesNeeded roles(const RunConfig& config) {
  return {
      .reference = {config.grpo.beta != 0, "grpo compares with one only when grpo.beta is above 0"}, .rollout = {true}, .verifier = {true}};
}

std::string reference(const RunConfig& config) { return config.grpo.reference; }

void judge(Judging& j) {
  const GrpoConfig& g = j.config.grpo;
  if (g.group_size == 1) {
    j.problem(cat(j.named("grpo.group_size"),
                  ": advantages are relative to the group's mean, so a group of one learns nothing (and with "
                  "grpo.scale_rewards = ",
                  g.scale_rewards, " divides zero by zero); the nearest valid value is 2"));
  }
  if (g.beta == 0 && !g.reference.empty()) j.warn(cat(j.named("grpo.reference"), ": not used, grpo.beta is 0"));
  if (g.beta == 0 && (j.given("grpo.kl") || j.given("grpo.kl_times_ratio")))
    j.warn("grpo.kl, grpo.kl_times_ratio: not used, grpo.beta is 0");
  if (g.constant_length > 0 && g.aggregation != "dr_grpo") {
    j.problem(cat(j.named("grpo.constant_length"), ": has a meaning for grpo.aggregation = dr_grpo only"));
  }
  if (const std::int64_t round = g.epochs * g.minibatches, left = j.config.train.steps % round; left != 0) {
    j.warn(cat(j.named("train.steps"), ": one batch of samples makes ", round,
               " steps (grpo.epochs x grpo.minibatches), so the last is trained on ",
               "in part; a run that is made longer later goes on with fresh samples"));
  }
  if (g.clip_low == 1) j.warn(cat(j.named("grpo.clip_low"), ": ratios are never clipped from below"));
  judge_rollout(j), judge_reward(j);
}

std::string average(const RunConfig& config) {
  const GrpoConfig& g = config.grpo;
  if (g.aggregation == "grpo") return "mean over samples of the mean over their tokens of l";
  if (g.aggregation == "bnpo") return "mean over the tokens of the update of l";
  if (g.aggregation == "dapo") return "sum over the tokens of the update of l  /  tokens of all samples of the round";
  const double length = g.constant_length > 0 ? g.constant_length : static_cast<double>(config.rollout.max_new_tokens);
  return cat("mean over samples of the sum over their tokens of l  /  ", to_text(length));
}

std::string kl_term(const GrpoConfig& g) {
  const std::string x = g.kl == "k1" ? "x" : g.kl == "k2" ? "x^2 / 2" : g.kl == "abs" ? "|x|" : "(exp(-x) - 1 + x)";
  return cat(" + ", to_text(g.beta), " ", g.kl_times_ratio ? "rho " : "", x);
}

std::string advantage(const GrpoConfig& g) {
  if (g.scale_rewards == "none") return "A = R - mean of its group";
  return cat("A = (R - mean of its group) / (standard deviation of ", g.scale_rewards == "batch" ? "the batch" : "its group", " + 0.0001)");
}

std::string formula(const RunConfig& config) {
  const GrpoConfig& g = config.grpo;
  const std::string bounded = g.delta > 0 ? cat("min(rho, ", to_text(g.delta), ")") : "rho";
  std::string text =
      cat("L = ", average(config), "\nl = - min(", bounded, " A, clip(rho, ", to_text(1 - g.clip_low), ", ", to_text(1 + g.clip_high),
          ") A)", g.beta != 0 ? kl_term(g) : "", g.entropy_coef != 0 ? cat(" - ", to_text(g.entropy_coef), " H") : "", "\n");
  text += g.ratio != "token" ? "rho = exp(mean over the sample of log p(t) - log p_old(t))\n"
                             : "rho = p(t) / p_old(t), p_old: the weights that sampled t\n";
  if (g.beta != 0) text += cat("x = log p(t) - log p_ref(t),  p_ref: ", g.reference.empty() ? "the starting weights" : g.reference, "\n");
  return cat(text, advantage(g), ",  ", g.group_size, " samples a group\n", reward_formula(config));
}

int run(Stage& stage) {
  const auto settings = value_or_throw(grpo_settings(stage.config()));
  auto data = stage.loader(engine::data::load_prompts(stage.data_options(), stage.text()), settings.minibatches);
  auto actors = stage.cluster();
  const auto plan = stage.begin(data.order().batches(), std::int64_t{settings.epochs} * settings.minibatches);
  return stage.drive(algorithms::grpo(actors, data, plan, settings), plan);
}

}  // namespace

Result<algorithms::GrpoConfig> grpo_settings(const RunConfig& config) {
  const GrpoConfig& g = config.grpo;
  Json fields = Json::Object{};
  fields.set("aggregation", g.aggregation), fields.set("clip_low", g.clip_low), fields.set("clip_high", g.clip_high);
  fields.set("delta", g.delta), fields.set("ratio", g.ratio), fields.set("beta", g.beta), fields.set("kl", g.kl);
  fields.set("kl_times_ratio", Json(g.kl_times_ratio)), fields.set("entropy_coef", g.entropy_coef);
  fields.set("temperature", config.rollout.temperature);
  const auto loss = valid_loss<algorithms::GrpoLoss>(fields, "grpo");
  if (!loss) return fail(loss.error());
  algorithms::GrpoConfig out;
  out.loss = *loss;
  out.group = static_cast<int>(g.group_size), out.epochs = static_cast<int>(g.epochs), out.minibatches = static_cast<int>(g.minibatches);
  out.mask_truncated = g.mask_truncated, out.constant_length = g.constant_length;
  const auto scales = algorithms::names_of(algorithms::GroupScale{});
  const auto scale = std::ranges::find(scales, g.scale_rewards);
  if (scale == scales.end())
    return fail(Errc::usage, cat("grpo.scale_rewards: group, batch or none is expected, found ", quote(g.scale_rewards)));
  out.scale = static_cast<algorithms::GroupScale>(scale - scales.begin());
  out.sampling = sampling_settings(config);
  return out;
}

Recipe grpo_recipe() {
  return {"grpo",
          "group relative policy optimization: prefer the samples that are judged better than their group",
          {"grpo", "rollout", "reward"},
          table,
          engine::data::Purpose::prompts,
          roles,
          reference,
          judge,
          formula,
          run};
}

std::vector<Preset> grpo_presets() {
  return {{"dr_grpo",
           "grpo",
           "GRPO without its two biases: no division by lengths or deviations (arXiv:2503.20783)",
           {{"grpo.aggregation", "dr_grpo"}, {"grpo.scale_rewards", "none"}}}};
}

std::vector<Preset> grpo_dialects() {
  return {{"trl", "grpo", "GRPOTrainer of TRL 1.16", {{"grpo.aggregation", "dapo"}, {"grpo.kl_times_ratio", "true"}}},
          {"verl", "grpo", "verl's defaults", {{"grpo.aggregation", "dapo"}, {"grpo.kl_times_ratio", "false"}}}};
}

}  // namespace troupe::launch
