#include "engine/base/text.h"
#include "launch/recipes/held_out.h"
#include "launch/recipes/preference/reference_free.h"
#include "launch/recipes/valid_loss.h"

namespace troupe::launch {
namespace {

constexpr Field table[] = {
    {"cpo.loss", [](RunConfig& c) { return Slot(&c.cpo.loss); },
     "sigmoid and hinge are on summed log-probabilities, ipo on mean ones", "sigmoid|hinge|ipo",
     any},
    {"cpo.beta", [](RunConfig& c) { return Slot(&c.cpo.beta); },
     "scale of the reward, beta times the answer's log-probability", "", above_0},
    {"cpo.label_smoothing",
     [](RunConfig& c) { return Slot(&c.cpo.label_smoothing); },
     "sigmoid: the share of labels thought to be wrong",
     "",
     {0, 0.5, false, true}},
    {"cpo.alpha", [](RunConfig& c) { return Slot(&c.cpo.alpha); },
     "AlphaPO: the reward is (1 - p^-alpha) / alpha; 0: log p", "", any},
    {"cpo.nll_weight", [](RunConfig& c) { return Slot(&c.cpo.nll_weight); },
     "weight of the chosen answers' negative log-likelihood (TRL's cpo_alpha)", "", at_least_0},
    {"cpo.nll_mean", [](RunConfig& c) { return Slot(&c.cpo.nll_mean); },
     "the likelihood is a mean over the chosen answers' tokens (TRL), or over the answers, each by "
     "its tokens' mean",
     "token|answer", any},
};

RolesNeeded roles(const RunConfig&) {
  return {};
}

void judge(Judging& j) {
  const CpoConfig& c = j.config.cpo;
  judge_eval(j);
  if (const auto settings = cpo_settings(j.config); !settings) j.problem(settings.error().what);
  if (c.nll_weight == 0) {
    j.unused("cpo.nll_mean", "there is no likelihood term: cpo.nll_weight is 0");
    j.warn(cat(j.named("cpo.nll_weight"),
               ": nothing holds the policy near where it began then: CPO has no reference"));
  }
}

std::string formula(const RunConfig& config) {
  const CpoConfig& c = config.cpo;
  const std::string beta = to_text(c.beta), eps = to_text(c.label_smoothing);
  std::string pair = cat("- log sigmoid(", beta, " (x_w - x_l))");
  if (c.label_smoothing > 0)
    pair = cat("- ", to_text(1 - c.label_smoothing), " log sigmoid(", beta, " (x_w - x_l)) - ", eps,
               " log sigmoid(-", beta, " (x_w - x_l))");
  if (c.loss == "hinge") pair = cat("max(0, 1 - ", beta, " (x_w - x_l))");
  if (c.loss == "ipo") pair = cat("(x_w - x_l - ", to_text(1 / (2 * c.beta)), ")^2");
  std::string x = cat(c.loss == "ipo" ? "mean" : "sum", " over the answer's tokens of log p");
  if (c.alpha != 0)
    x = cat("(1 - e^(-", to_text(c.alpha), " a)) / ", to_text(c.alpha), ",  a = ", x);
  return cat("L = mean over pairs of ", pair, nll_formula(c.nll_weight, c.nll_mean), "\nx = ", x,
             "\n");
}

int run(RunContext& context) {
  return run_on_pairs(context, value_or_throw(cpo_settings(context.config())), algorithms::cpo);
}

}  // namespace

Result<algorithms::CpoLoss> cpo_settings(const RunConfig& config) {
  const CpoConfig& c = config.cpo;
  const Json fields = Json::Object{{"loss", c.loss},
                                   {"beta", c.beta},
                                   {"label_smoothing", c.label_smoothing},
                                   {"alpha", c.alpha},
                                   {"nll_weight", c.nll_weight},
                                   {"nll_mean", c.nll_mean}};
  return valid_loss<algorithms::CpoLoss>(fields, "cpo");
}

Recipe cpo_recipe() {
  return {"cpo",
          "contrastive preference optimization: prefer the chosen answer, and keep it likely, "
          "without a reference",
          {"cpo", "eval"},
          table,
          engine::data::Purpose::pairs,
          roles,
          nullptr,
          judge,
          formula,
          run};
}

}  // namespace troupe::launch
