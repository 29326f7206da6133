#include "launch/recipes/preference/kto.h"

#include <algorithm>

#include "engine/base/text.h"
#include "launch/recipes/held_out.h"
#include "launch/recipes/valid_loss.h"

namespace troupe::launch {
namespace {

constexpr Field table[] = {
    {"kto.loss", [](RunConfig& c) { return Slot(&c.kto.loss); }, "apo_zero_unpaired has no KL term",
     "kto|apo_zero_unpaired", any},
    {"kto.beta", [](RunConfig& c) { return Slot(&c.kto.beta); },
     "how strongly the policy is tied to the reference", "", above_0},
    {"kto.desirable_weight", [](RunConfig& c) { return Slot(&c.kto.desirable_weight); },
     "weight of the good answers' loss", "", above_0},
    {"kto.undesirable_weight", [](RunConfig& c) { return Slot(&c.kto.undesirable_weight); },
     "weight of the bad answers' loss", "", above_0},
    {"kto.reference", [](RunConfig& c) { return Slot(&c.kto.reference); },
     "reference model's directory; empty: the starting weights", "", any},
    {"kto.sync_every", [](RunConfig& c) { return Slot(&c.kto.sync_every); },
     "steps between two moves of the reference towards the policy; 0: it stays", "", at_least_0},
    {"kto.sync_share", [](RunConfig& c) { return Slot(&c.kto.sync_share); },
     "reference = share * policy + (1 - share) * reference", "", fraction},
};

RolesNeeded roles(const RunConfig& config) {
  RolesNeeded needed;
  needed.reference = {true};
  needed.reference_follows = config.kto.sync_every > 0;
  return needed;
}

std::string reference(const RunConfig& config) {
  return config.kto.reference;
}

void judge(Judging& j) {
  judge_eval(j);
  if (const auto settings = kto_settings(j.config, 0); !settings) j.problem(settings.error().what);
  if (j.config.kto.loss == "kto" && j.config.train.batch_size < 2)
    j.problem(cat(j.named("train.batch_size"),
                  ": the KL term is measured on the batch's prompts with other rows' answers: "
                  "expected at least 2"));
  judge_following(j, "kto.sync_every", j.config.kto.sync_every);
  if (j.config.kto.sync_every == 0)
    j.unused("kto.sync_share", "the reference does not move: kto.sync_every is 0");
}

std::string formula(const RunConfig& config) {
  const KtoConfig& k = config.kto;
  const std::string beta = to_text(k.beta),
                    good = k.desirable_weight == 1 ? "" : to_text(k.desirable_weight) + " ",
                    bad = k.undesirable_weight == 1 ? "" : to_text(k.undesirable_weight) + " ";
  const bool kl = k.loss == "kto";
  return cat("L = mean over answers of ", good, "(1 - sigmoid(", beta, kl ? " (u - z)" : " u",
             ")) where good, ", bad, "(1 - sigmoid(", beta, kl ? " (z - u)" : " (-u)",
             ")) where bad\nu = log p(y | x) - log p_ref(y | x)\n",
             kl ? "z = max(0, mean of u over the batch's prompts, each with the answer of another "
                  "row), no gradient\n"
                : "",
             "p_ref: ", k.reference.empty() ? std::string("the starting weights") : k.reference,
             "\n");
}

algorithms::HeldOutAnswers held_out(const RunContext& context,
                                    const algorithms::KtoConfig& settings) {
  algorithms::HeldOutAnswers out;
  out.matched.every = context.config().eval.every;
  if (context.config().eval.path.empty()) return out;
  const auto answers =
      value_or_throw(engine::data::load_unpaired(eval_options(context), context.text()));
  const bool kl = settings.loss.kind == algorithms::KtoLossKind::kto;
  for (const auto& batch :
       algorithms::in_batches(answers.examples, context.config().train.batch_size)) {
    out.matched.batches.push_back(engine::data::to_experience(batch, settings.max_length));
    out.mismatched.push_back(kl ? engine::data::mismatched(batch, settings.max_length)
                                : engine::data::Experience{});
  }
  return out;
}

int run(RunContext& context) {
  const auto settings = value_or_throw(kto_settings(context.config(), context.max_length()));
  auto data = context.loader<engine::data::UnpairedExample>(context.data_options());
  const auto& examples = data.dataset().examples;
  const auto good = static_cast<std::size_t>(
      std::ranges::count_if(examples, [](const auto& example) { return example.desirable; }));
  if (const auto odd = imbalance(settings.loss, good, examples.size() - good); !odd.empty())
    log_warning(odd);
  return run_on_rows(context, data, settings, held_out(context, settings), algorithms::kto);
}

}  // namespace

std::string imbalance(const algorithms::KtoLoss& loss, std::size_t good, std::size_t bad) {
  const auto of = [](std::size_t count) {
    return static_cast<double>(std::max<std::size_t>(count, 1));
  };
  const double ratio = loss.desirable_weight * of(good) / (loss.undesirable_weight * of(bad));
  if (good == bad || (ratio >= 0.995 && ratio <= 4.0 / 3 + 0.005)) return "";
  const double low = loss.undesirable_weight * of(bad) / of(good);
  return cat("kto: ", good, " good and ", bad, " bad answers with the weights ",
             to_text(loss.desirable_weight), " and ", to_text(loss.undesirable_weight),
             " weigh as ", to_text(ratio, 2),
             " to 1; from 1 to 1.33 is advised: kto.desirable_weight from ", to_text(low, 2),
             " to ", to_text(low * 4 / 3, 2), ", or kto.undesirable_weight from ",
             to_text(loss.desirable_weight * of(good) / of(bad) * 3 / 4, 2), " to ",
             to_text(loss.desirable_weight * of(good) / of(bad), 2), " (not both)");
}

Result<algorithms::KtoConfig> kto_settings(const RunConfig& config, std::int64_t max_length) {
  const KtoConfig& k = config.kto;
  const Json fields = Json::Object{{"loss", k.loss},
                                   {"beta", k.beta},
                                   {"desirable_weight", k.desirable_weight},
                                   {"undesirable_weight", k.undesirable_weight}};
  const auto loss = valid_loss<algorithms::KtoLoss>(fields, "kto");
  RETURN_IF_ERROR(loss);
  return algorithms::KtoConfig{*loss, max_length, {k.sync_every, k.sync_share}};
}

Recipe kto_recipe() {
  return {"kto",
          "Kahneman-Tversky optimization: answers that are good or bad, without pairs",
          {"kto", "eval"},
          table,
          engine::data::Purpose::unpaired,
          roles,
          reference,
          judge,
          formula,
          run};
}

std::vector<Preset> kto_dialects() {
  return {{"trl",
           "kto",
           "KTOTrainer of TRL 1.16",
           {{"train.learning_rate", "1e-6"}, {"train.max_length", "1024"}}}};
}

}  // namespace troupe::launch
