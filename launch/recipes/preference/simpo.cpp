#include "engine/base/text.h"
#include "launch/recipes/held_out.h"
#include "launch/recipes/preference/reference_free.h"
#include "launch/recipes/valid_loss.h"

namespace troupe::launch {
namespace {

constexpr Field table[] = {
    {"simpo.loss", [](RunConfig& c) { return Slot(&c.simpo.loss); },
     "of the margin between the answers' mean log-probabilities", "sigmoid|hinge|ipo", any},
    {"simpo.beta", [](RunConfig& c) { return Slot(&c.simpo.beta); },
     "scale of the reward, beta times the mean log-probability", "", above_0},
    {"simpo.gamma_beta_ratio", [](RunConfig& c) { return Slot(&c.simpo.gamma_beta_ratio); },
     "the margin to win by over beta, as SimPO's own code and MindSpeed have it", "", at_least_0},
    {"simpo.gamma",
     [](RunConfig& c) { return Slot(&c.simpo.gamma); },
     "the margin to win by in rewards (beta times gamma_beta_ratio), as TRL's simpo_gamma; -1: "
     "gamma_beta_ratio says it",
     "",
     {-1, std::numeric_limits<double>::infinity()}},
    {"simpo.label_smoothing",
     [](RunConfig& c) { return Slot(&c.simpo.label_smoothing); },
     "sigmoid: the share of labels thought to be wrong",
     "",
     {0, 0.5, false, true}},
    {"simpo.alpha", [](RunConfig& c) { return Slot(&c.simpo.alpha); },
     "AlphaPO: the reward is (1 - p^-alpha) / alpha; 0: log p", "", any},
    {"simpo.nll_weight", [](RunConfig& c) { return Slot(&c.simpo.nll_weight); },
     "weight of the chosen answers' negative log-likelihood; 0 is SimPO (TRL's CPOTrainer adds it "
     "with cpo_alpha = 1 unless told 0)",
     "", at_least_0},
    {"simpo.nll_mean", [](RunConfig& c) { return Slot(&c.simpo.nll_mean); },
     "the likelihood is a mean over the chosen answers' tokens (TRL), or over the answers, each by "
     "its tokens' mean (MindSpeed)",
     "token|answer", any},
};

// One margin in two units.
double ratio_of(const SimpoConfig& s) {
  return s.gamma >= 0 ? s.gamma / s.beta : s.gamma_beta_ratio;
}

RolesNeeded roles(const RunConfig&) {
  return {};
}

void judge(Judging& j) {
  const SimpoConfig& s = j.config.simpo;
  judge_eval(j);
  if (const auto settings = simpo_settings(j.config); !settings) j.problem(settings.error().what);
  if (s.gamma >= 0 && j.given("simpo.gamma") && j.given("simpo.gamma_beta_ratio"))
    j.problem(cat(j.named("simpo.gamma"), ": ", j.named("simpo.gamma_beta_ratio"),
                  " says the same margin in another unit (gamma = beta * gamma_beta_ratio); give "
                  "one of them"));
  if (s.gamma < 0 && s.gamma != -1)
    j.problem(cat(j.named("simpo.gamma"),
                  ": expected a number of at least 0, or -1 for gamma_beta_ratio"));
  if (ratio_of(s) > 2)
    j.warn(
        cat("simpo: answers are to win by a mean log-probability of ", to_text(ratio_of(s)),
            " a token (gamma ", to_text(ratio_of(s) * s.beta), " over beta ", to_text(s.beta),
            "); SimPO's authors use 0.25 to 1.6 (TRL's defaults, beta 0.1 with gamma 0.5, are 5)"));
  if (s.nll_weight > 0)
    j.warn(cat(
        j.named("simpo.nll_weight"),
        ": with a likelihood term this is CPO-SimPO, not SimPO (TRL's CPOTrainer does so unless ",
        "cpo_alpha is set to 0); set it to 0 for SimPO"));
  if (s.nll_weight == 0)
    j.unused("simpo.nll_mean", "there is no likelihood term: simpo.nll_weight is 0");
}

std::string formula(const RunConfig& config) {
  const SimpoConfig& s = config.simpo;
  const std::string beta = to_text(s.beta), eps = to_text(s.label_smoothing);
  std::string pair = cat("- log sigmoid(", beta, " z)");
  if (s.label_smoothing > 0)
    pair = cat("- ", to_text(1 - s.label_smoothing), " log sigmoid(", beta, " z) - ", eps,
               " log sigmoid(-", beta, " z)");
  if (s.loss == "hinge") pair = cat("max(0, 1 - ", beta, " z)");
  if (s.loss == "ipo") pair = cat("(z - ", to_text(1 / (2 * s.beta)), ")^2");
  std::string x = "x = mean over the answer's tokens of log p";
  if (s.alpha != 0)
    x = cat("x = (1 - e^(-", to_text(s.alpha), " a)) / ", to_text(s.alpha),
            ",  a = mean over the answer's tokens of log p");
  return cat("L = mean over pairs of ", pair, nll_formula(s.nll_weight, s.nll_mean),
             "\nz = x_w - x_l - ", to_text(ratio_of(s)),
             "   (gamma = ", to_text(ratio_of(s) * s.beta), ")\n", x, "\n");
}

int run(RunContext& context) {
  return run_on_pairs(context, value_or_throw(simpo_settings(context.config())), algorithms::simpo);
}

}  // namespace

Result<algorithms::SimpoLoss> simpo_settings(const RunConfig& config) {
  const SimpoConfig& s = config.simpo;
  const Json fields = Json::Object{{"loss", s.loss},
                                   {"beta", s.beta},
                                   {"gamma_beta_ratio", ratio_of(s)},
                                   {"label_smoothing", s.label_smoothing},
                                   {"alpha", s.alpha},
                                   {"nll_weight", s.nll_weight},
                                   {"nll_mean", s.nll_mean}};
  return valid_loss<algorithms::SimpoLoss>(fields, "simpo");
}

Recipe simpo_recipe() {
  return {"simpo",
          "SimPO: prefer the chosen answer by its mean log-probability, without a reference "
          "(AlphaPO with simpo.alpha)",
          {"simpo", "eval"},
          table,
          engine::data::Purpose::pairs,
          roles,
          nullptr,
          judge,
          formula,
          run};
}

std::vector<Preset> reference_free_dialects() {
  return {
      {"trl",
       "simpo",
       "CPOTrainer of TRL 1.16 with loss_type simpo, its likelihood term included",
       {{"simpo.beta", "0.1"},
        {"simpo.gamma", "0.5"},
        {"simpo.nll_weight", "1"},
        {"train.learning_rate", "1e-6"},
        {"train.max_length", "1024"}}},
      {"mindspeed",
       "simpo",
       "MindSpeed's --stage simpo",
       {{"simpo.beta", "2.5"}, {"simpo.gamma_beta_ratio", "1.4"}, {"simpo.nll_mean", "answer"}}},
      {"trl",
       "cpo",
       "CPOTrainer of TRL 1.16",
       {{"train.learning_rate", "1e-6"}, {"train.max_length", "1024"}}},
      {"trl",
       "orpo",
       "ORPOTrainer of TRL 1.16",
       {{"train.learning_rate", "1e-6"}, {"train.max_length", "1024"}}}};
}

}  // namespace troupe::launch
