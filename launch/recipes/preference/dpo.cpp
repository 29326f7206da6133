#include "launch/recipes/preference/dpo.h"

#include <algorithm>

#include "engine/base/text.h"
#include "launch/recipes/held_out.h"
#include "launch/recipes/run_context.h"
#include "launch/recipes/valid_loss.h"

namespace troupe::launch {
namespace {

constexpr Field table[] = {
    {"dpo.beta", [](RunConfig& c) { return Slot(&c.dpo.beta); },
     "how strongly the policy is tied to the reference", "", above_0},
    {"dpo.loss", [](RunConfig& c) { return Slot(&c.dpo.loss); },
     "one, or a list of them, which are added: ipo is on log-ratios averaged over tokens (TRL), "
     "ipo_sum on summed ones (the paper); cdpo "
     "and "
     "robust use label_smoothing; kto_pair is MindSpeed's; sft is the likelihood of the chosen "
     "answers",
     "sigmoid|cdpo|robust|hinge|ipo|ipo_sum|exo_pair|nca_pair|bco_pair|sppo_hard|aot|aot_unpaired|"
     "apo_zero|apo_down|discopop|sigmoid_norm|"
     "kto_pair|sft",
     any},
    {"dpo.loss_weights", [](RunConfig& c) { return Slot(&c.dpo.loss_weights); },
     "one for each of dpo.loss; empty: 1 each", "", above_0},
    {"dpo.label_smoothing",
     [](RunConfig& c) { return Slot(&c.dpo.label_smoothing); },
     "cdpo, robust, exo_pair, aot, aot_unpaired: the share of labels thought to be wrong",
     "",
     {0, 0.5, false, true}},
    {"dpo.divergence", [](RunConfig& c) { return Slot(&c.dpo.divergence); },
     "what the policy's distance to the reference is measured by (f-DPO); others than reverse_kl "
     "go with sigmoid, cdpo, robust, hinge, "
     "ipo, "
     "ipo_sum, exo_pair, discopop, sigmoid_norm and sft",
     "reverse_kl|forward_kl|js_divergence|alpha_divergence", any},
    {"dpo.divergence_alpha", [](RunConfig& c) { return Slot(&c.dpo.divergence_alpha); },
     "alpha_divergence's alpha; 1 is reverse_kl", "", any},
    {"dpo.ld_alpha", [](RunConfig& c) { return Slot(&c.dpo.ld_alpha); },
     "LD-DPO: weight of an answer's tokens beyond the length of the shorter one of its pair; 1: "
     "all tokens count alike",
     "", fraction},
    {"dpo.weighting", [](RunConfig& c) { return Slot(&c.dpo.weighting); },
     "WPO: pairs weigh by how likely the policy is to write them; held-out pairs do not", "", any},
    {"dpo.discopop_tau", [](RunConfig& c) { return Slot(&c.dpo.discopop_tau); },
     "discopop: temperature of its mixture", "", above_0},
    {"dpo.nll_mean", [](RunConfig& c) { return Slot(&c.dpo.nll_mean); },
     "sft: the mean over the chosen answers' tokens (TRL), or over the answers, each by the mean "
     "of its tokens (MindSpeed's pref_ftx)",
     "token|answer", any},
    {"dpo.reference", [](RunConfig& c) { return Slot(&c.dpo.reference); },
     "reference model's directory; empty: the starting weights", "", any},
    {"dpo.precompute_reference", [](RunConfig& c) { return Slot(&c.dpo.precompute_reference); },
     "score all pairs with the reference before the first step, then free it", "", any},
    {"dpo.sync_every", [](RunConfig& c) { return Slot(&c.dpo.sync_every); },
     "TR-DPO: steps between two moves of the reference towards the policy; 0: it stays (TRL's "
     "sync_ref_model with 512)",
     "", at_least_0},
    {"dpo.sync_share", [](RunConfig& c) { return Slot(&c.dpo.sync_share); },
     "TR-DPO: reference = share * policy + (1 - share) * reference (TRL's ref_model_mixup_alpha)",
     "", fraction},
};

bool uses(const DpoConfig& d, std::initializer_list<std::string_view> losses) {
  return std::ranges::any_of(
      d.loss, [&](const auto& loss) { return std::ranges::find(losses, loss) != losses.end(); });
}

RolesNeeded roles(const RunConfig& config) {
  RolesNeeded needed;
  needed.reference = {true};
  needed.reference_follows = config.dpo.sync_every > 0;
  return needed;
}

std::string reference(const RunConfig& config) {
  return config.dpo.reference;
}

void judge(Judging& j) {
  const DpoConfig& d = j.config.dpo;
  judge_eval(j);
  const auto settings = dpo_settings(j.config);
  if (!settings) j.problem(settings.error().what);
  if (!uses(d, {"discopop"})) j.unused("dpo.discopop_tau", "only the loss discopop uses it");
  if (!uses(d, {"sft"})) j.unused("dpo.nll_mean", "only the loss sft uses it");
  if (d.divergence != "alpha_divergence")
    j.unused("dpo.divergence_alpha", "only dpo.divergence = alpha_divergence uses it");
  judge_following(j, "dpo.sync_every", d.sync_every);
  if (d.sync_every == 0)
    j.unused("dpo.sync_share", "the reference does not move: dpo.sync_every is 0");
  if (j.config.data.stream && d.precompute_reference)
    j.problem(
        cat(j.named("dpo.precompute_reference"),
            ": scores every pair before the first step, and a stream of data (data.stream) is not "
            "read before; turn one of them off"));
  if (d.sync_every > 0 && d.precompute_reference)
    j.problem(cat(
        j.named("dpo.precompute_reference"), ": a reference that moves every ", d.sync_every,
        " steps (dpo.sync_every) cannot be scored before the first one; set one of the two off"));
  if (d.loss.size() == 1 && d.loss[0] == "sft")
    j.warn(cat(j.named("dpo.loss"),
               ": the rejected answers and the reference change nothing then; --algorithm sft "
               "needs neither"));
  if (uses(d, {"aot", "aot_unpaired", "kto_pair"}) && j.config.train.batch_size < 2)
    j.problem(cat(j.named("train.batch_size"), ": ", d.loss.front(),
                  " compares the pairs of a batch: expected at least 2"));
}

/// The loss of one pair, from the scores c (chosen) and r (rejected).
std::string pair_loss(const DpoConfig& d, const std::string& loss) {
  const std::string beta = to_text(d.beta), half = to_text(1 / (2 * d.beta)),
                    eps = to_text(d.label_smoothing), rest = to_text(1 - d.label_smoothing);
  const auto smoothed = [&](const std::string& z) {
    if (d.label_smoothing == 0) return cat("- log sigmoid(", beta, " ", z, ")");
    return cat("- ", rest, " log sigmoid(", beta, " ", z, ") - ", eps, " log sigmoid(-", beta, " ",
               z, ")");
  };
  if (loss == "sigmoid") return cat("- log sigmoid(", beta, " (c - r))");
  if (loss == "cdpo") return smoothed("(c - r)");
  if (loss == "robust") {
    return cat("( - ", rest, " log sigmoid(", beta, " (c - r)) + ", eps, " log sigmoid(-", beta,
               " (c - r)) ) / ", to_text(1 - 2 * d.label_smoothing));
  }
  if (loss == "hinge") return cat("max(0, 1 - ", beta, " (c - r))");
  if (loss == "ipo") return cat("( c / |y_w| - r / |y_l| - ", half, " )^2");
  if (loss == "ipo_sum") return cat("( c - r - ", half, " )^2");
  if (loss == "exo_pair") {
    return cat("sigmoid(m) (log sigmoid(m) - log ", rest, ") + sigmoid(-m) (log sigmoid(-m) - log ",
               eps, "),  m = ", beta, " (c - r)");
  }
  if (loss == "nca_pair")
    return cat("- log sigmoid(", beta, " c) - 0.5 log sigmoid(-", beta, " c) - 0.5 log sigmoid(-",
               beta, " r)");
  if (loss == "bco_pair") return cat("- log sigmoid(", beta, " c) - log sigmoid(-", beta, " r)");
  if (loss == "sppo_hard") return cat("(c - ", half, ")^2 + (r + ", half, ")^2");
  if (loss == "aot")
    return cat(smoothed("d"),
               ",  d = sort(log p(y_w) - log p(y_l)) - sort(the same of p_ref), over the batch");
  if (loss == "aot_unpaired") return cat(smoothed("d"), ",  d = sort(c) - sort(r), over the batch");
  if (loss == "apo_zero") return cat("1 - sigmoid(", beta, " c) + sigmoid(", beta, " r)");
  if (loss == "apo_down") return cat("sigmoid(", beta, " c) + 1 - sigmoid(", beta, " (c - r))");
  if (loss == "discopop") {
    return cat("(1 - s) (- log sigmoid(m)) + s exp(-m),  m = ", beta, " (c - r),  s = sigmoid(m / ",
               to_text(d.discopop_tau), ")");
  }
  if (loss == "kto_pair")
    return cat("0.5 (1 - sigmoid(", beta, " (c - max(0, mean r)))) + 0.5 (1 - sigmoid(", beta,
               " (max(0, mean c) - r))), means over the batch");
  return cat("- log sigmoid(", beta, " (c / |y_w| - r / |y_l|))");  // sigmoid_norm
}

std::string weighted(double weight, const std::string& text) {
  return weight == 1 ? text : cat(to_text(weight), " [", text, "]");
}

// How the log-ratio x becomes a score.
std::string scores(const DpoConfig& d) {
  if (d.divergence == "forward_kl") return "c and r: 1 - e^-x of their log-ratio x (forward KL)\n";
  if (d.divergence == "js_divergence")
    return "c and r: log 2 + log sigmoid(x) of their log-ratio x (Jensen-Shannon)\n";
  if (d.divergence == "alpha_divergence" && d.divergence_alpha != 1) {
    const std::string power = to_text(d.divergence_alpha - 1);
    return cat("c and r: (e^(", power, " x) - 1) / ", power,
               " of their log-ratio x (alpha divergence)\n");
  }
  return "";
}

std::string formula(const RunConfig& config) {
  const DpoConfig& d = config.dpo;
  std::vector<std::string> terms;
  std::string nll;
  for (std::size_t i = 0; i < d.loss.size(); ++i) {
    const double weight = d.loss_weights.empty() ? 1 : d.loss_weights.at(i);
    if (d.loss[i] == "sft")
      nll = nll_formula(weight, d.nll_mean);
    else
      terms.push_back(weighted(weight, pair_loss(d, d.loss[i])));
  }
  std::string text = terms.empty() ? cat("L =", nll.substr(2))
                                   : cat("L = mean over pairs of ", d.weighting ? "w " : "",
                                         join(terms, " + "), nll);
  text +=
      "\nc = log p(y_w | x) - log p_ref(y_w | x),  r = the same of y_l  (sums over the answer's "
      "tokens";
  if (d.ld_alpha != 1)
    text += cat("; beyond the shorter one's length they weigh ", to_text(d.ld_alpha));
  text += cat(")\n", scores(d),
              "p_ref: ", d.reference.empty() ? std::string("the starting weights") : d.reference);
  if (d.sync_every > 0)
    text += cat(", every ", d.sync_every, " steps ", to_text(d.sync_share), " p + ",
                to_text(1 - d.sync_share), " p_ref (of weights)");
  if (d.weighting)
    text +=
        "\nw = e^(mean over y_w's tokens of log p_t - log sum p^2) times the same of y_l, no "
        "gradient";
  return text + "\n";
}

int run(RunContext& context) {
  return run_on_pairs(context, value_or_throw(dpo_settings(context.config())), algorithms::dpo);
}

}  // namespace

Result<algorithms::DpoConfig> dpo_settings(const RunConfig& config) {
  const DpoConfig& d = config.dpo;
  Json::Array kinds, weights;
  for (const auto& loss : d.loss) kinds.emplace_back(loss);
  for (const double weight : d.loss_weights) weights.emplace_back(weight);
  const Json fields = Json::Object{{"loss", std::move(kinds)},
                                   {"loss_weights", std::move(weights)},
                                   {"beta", d.beta},
                                   {"label_smoothing", d.label_smoothing},
                                   {"divergence", d.divergence},
                                   {"divergence_alpha", d.divergence_alpha},
                                   {"ld_alpha", d.ld_alpha},
                                   {"weighting", d.weighting},
                                   {"discopop_tau", d.discopop_tau},
                                   {"nll_mean", d.nll_mean}};
  const auto loss = valid_loss<algorithms::DpoLoss>(fields, "dpo");
  RETURN_IF_ERROR(loss);
  return algorithms::DpoConfig{*loss, d.precompute_reference, {d.sync_every, d.sync_share}};
}

Recipe dpo_recipe() {
  return {
      "dpo",
      "direct preference optimization: prefer the chosen answer of each pair to the rejected one",
      {"dpo", "eval"},
      table,
      engine::data::Purpose::pairs,
      roles,
      reference,
      judge,
      formula,
      run};
}

std::vector<Preset> dpo_dialects() {
  return {{"trl",
           "dpo",
           "DPOTrainer of TRL 1.16",
           {{"train.learning_rate", "1e-6"}, {"train.max_length", "1024"}}},
          {"openrlhf",
           "dpo",
           "OpenRLHF's train_dpo: conservative label smoothing",
           {{"dpo.loss", "cdpo"}, {"train.learning_rate", "9e-6"}}},
          {"mindspeed",
           "dpo",
           "MindSpeed's --stage dpo: conservative label smoothing, pref_ftx as a mean over answers",
           {{"dpo.loss", "cdpo"}, {"dpo.nll_mean", "answer"}}}};
}

}  // namespace troupe::launch
