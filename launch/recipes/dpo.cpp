#include "launch/recipes/dpo.h"

#include "engine/base/text.h"
#include "launch/recipes/valid_loss.h"
#include "launch/run/stage.h"

namespace troupe::launch {
namespace {

constexpr Field table[] = {
    {"dpo.beta", [](RunConfig& c) { return Slot(&c.dpo.beta); }, "how strongly the policy is tied to the reference", "", above_0},
    {"dpo.loss", [](RunConfig& c) { return Slot(&c.dpo.loss); },
     "ipo is on log-ratios averaged over tokens (TRL), ipo_sum on summed ones (the paper); cdpo and robust use label_smoothing",
     "sigmoid|cdpo|robust|hinge|ipo|ipo_sum|exo_pair|nca_pair|bco_pair|sppo_hard|apo_zero|apo_down|discopop|sigmoid_norm", any},
    {"dpo.label_smoothing",
     [](RunConfig& c) { return Slot(&c.dpo.label_smoothing); },
     "cdpo, robust, exo_pair: the share of labels thought to be wrong",
     "",
     {0, 0.5, false, true}},
    {"dpo.discopop_tau", [](RunConfig& c) { return Slot(&c.dpo.discopop_tau); }, "discopop: temperature of its mixture", "", above_0},
    {"dpo.reference", [](RunConfig& c) { return Slot(&c.dpo.reference); }, "reference model's directory; empty: the starting weights", "",
     any},
    {"dpo.precompute_reference", [](RunConfig& c) { return Slot(&c.dpo.precompute_reference); },
     "score all pairs with the reference before the first step, then free it", "", any},
};

RolesNeeded roles(const RunConfig&) { return {.reference = {true}}; }

std::string reference(const RunConfig& config) { return config.dpo.reference; }

void judge(Judging& j) {
  const DpoConfig& d = j.config.dpo;
  const bool smooths = d.loss == "cdpo" || d.loss == "robust" || d.loss == "exo_pair";
  if (d.label_smoothing > 0 && !smooths) {
    j.problem(cat(j.named("dpo.label_smoothing"), ": ", d.loss, " does not use it; for smoothed labels set dpo.loss to cdpo or robust"));
  }
  if (d.label_smoothing == 0 && d.loss == "exo_pair") j.problem("dpo.loss = exo_pair: needs dpo.label_smoothing above 0, such as 0.001");
  if (j.given("dpo.discopop_tau") && d.loss != "discopop") j.warn(cat(j.named("dpo.discopop_tau"), ": not used by dpo.loss = ", d.loss));
}

/// The loss of one pair, from the log-ratios c (chosen) and r (rejected).
std::string pair_loss(const DpoConfig& d) {
  const std::string beta = to_text(d.beta), half = to_text(1 / (2 * d.beta)), eps = to_text(d.label_smoothing),
                    rest = to_text(1 - d.label_smoothing);
  if (d.loss == "sigmoid") return cat("- log sigmoid(", beta, " (c - r))");
  if (d.loss == "cdpo") return cat("- ", rest, " log sigmoid(", beta, " (c - r)) - ", eps, " log sigmoid(-", beta, " (c - r))");
  if (d.loss == "robust") {
    return cat("( - ", rest, " log sigmoid(", beta, " (c - r)) + ", eps, " log sigmoid(-", beta, " (c - r)) ) / ",
               to_text(1 - 2 * d.label_smoothing));
  }
  if (d.loss == "hinge") return cat("max(0, 1 - ", beta, " (c - r))");
  if (d.loss == "ipo") return cat("( c / |y_w| - r / |y_l| - ", half, " )^2");
  if (d.loss == "ipo_sum") return cat("( c - r - ", half, " )^2");
  if (d.loss == "exo_pair") {
    return cat("sigmoid(m) (log sigmoid(m) - log ", rest, ") + sigmoid(-m) (log sigmoid(-m) - log ", eps, "),  m = ", beta, " (c - r)");
  }
  if (d.loss == "nca_pair") return cat("- log sigmoid(", beta, " c) - 0.5 log sigmoid(-", beta, " c) - 0.5 log sigmoid(-", beta, " r)");
  if (d.loss == "bco_pair") return cat("- log sigmoid(", beta, " c) - log sigmoid(-", beta, " r)");
  if (d.loss == "sppo_hard") return cat("(c - ", half, ")^2 + (r + ", half, ")^2");
  if (d.loss == "apo_zero") return cat("1 - sigmoid(", beta, " c) + sigmoid(", beta, " r)");
  if (d.loss == "apo_down") return cat("sigmoid(", beta, " c) + 1 - sigmoid(", beta, " (c - r))");
  if (d.loss == "discopop") {
    return cat("(1 - s) (- log sigmoid(m)) + s exp(-m),  m = ", beta, " (c - r),  s = sigmoid(m / ", to_text(d.discopop_tau), ")");
  }
  return cat("- log sigmoid(", beta, " (c / |y_w| - r / |y_l|))");  // sigmoid_norm
}

std::string formula(const RunConfig& config) {
  const DpoConfig& d = config.dpo;
  return cat("L = mean over pairs of ", pair_loss(d), "\n",
             "c = log p(y_w | x) - log p_ref(y_w | x),  r = the same of y_l  (sums over the answer's tokens)\n",
             "p_ref: ", d.reference.empty() ? std::string("the starting weights") : d.reference);
}

int run(Stage& stage) {
  const auto settings = value_or_throw(dpo_settings(stage.config()));
  auto data = stage.loader(engine::data::load_pairs(stage.data_options(), stage.text()));
  auto actors = stage.cluster();
  const auto plan = stage.begin(data.order().batches());
  return stage.drive(algorithms::dpo(actors, data, plan, settings), plan);
}

}  // namespace

Result<algorithms::DpoConfig> dpo_settings(const RunConfig& config) {
  Json fields = Json::Object{};
  fields.set("kind", Json::Array{config.dpo.loss}), fields.set("beta", config.dpo.beta), fields.set("label_smoothing", config.dpo.label_smoothing);
  fields.set("discopop_tau", config.dpo.discopop_tau);
  const auto loss = valid_loss<algorithms::DpoLoss>(fields, "dpo");
  if (!loss) return fail(loss.error());
  return algorithms::DpoConfig{*loss, config.dpo.precompute_reference};
}

Recipe dpo_recipe() {
  return {"dpo",
          "direct preference optimization: prefer the chosen answer of each pair to the rejected one",
          {"dpo"},
          table,
          engine::data::Purpose::pairs,
          roles,
          reference,
          judge,
          formula,
          run};
}

}  // namespace troupe::launch
