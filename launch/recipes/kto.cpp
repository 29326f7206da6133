#include "launch/recipes/kto.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "launch/recipes/held_out.h"

namespace troupe::launch::recipes {
namespace {

void validate_kto(Validation& v) {
  const algorithms::KtoConfig& k = v.config.kto;
  validate_eval(v);
  if (k.loss.kind == algorithms::KtoLossKind::kto && v.config.train.batch_size < 2)
    v.problem(cat(v.named("train.batch_size"),
                  ": the KL term is estimated on the prompts of the batch with answers of other "
                  "rows: expected at least 2"));
  validate_following(v, "kto", k.following);
}

std::string kto_formula(const config::RunConfig& config) {
  const algorithms::KtoConfig& kto = config.kto;
  const algorithms::KtoLoss& k = kto.loss;
  const std::string beta = to_text(k.beta),
                    good = k.desirable_weight == 1 ? "" : to_text(k.desirable_weight) + " ",
                    bad = k.undesirable_weight == 1 ? "" : to_text(k.undesirable_weight) + " ";
  const bool kl = k.kind == algorithms::KtoLossKind::kto;
  return cat("L = mean over answers of ", good, "(1 - sigmoid(", beta, kl ? " (u - z)" : " u",
             ")) where good, ", bad, "(1 - sigmoid(", beta, kl ? " (z - u)" : " (-u)",
             ")) where bad\nu = log p(y | x) - log p_ref(y | x)\n",
             kl ? "z = max(0, mean of u over the batch's prompts, each with the answer of another "
                  "row), no gradient\n"
                : "",
             "p_ref: ", kto.reference.empty() ? std::string("the initial weights") : kto.reference,
             "\n");
}

algorithms::HeldOutAnswers kto_held_out(const RunContext& context,
                                        const algorithms::KtoConfig& settings) {
  algorithms::HeldOutAnswers out;
  out.matched.every = context.config().eval.every;
  if (!has_held_out(context.config())) return out;
  const auto answers = value_or_throw(
      engine::data::load<engine::data::UnpairedExample>(eval_options(context), context.text()));
  log_held_out(context.config(), answers.report);
  const bool kl = settings.loss.kind == algorithms::KtoLossKind::kto;
  for (const auto& batch :
       algorithms::in_batches(answers.examples, context.config().train.batch_size)) {
    out.matched.batches.push_back(engine::data::to_experience(batch, settings.max_length));
    out.mismatched.push_back(kl ? engine::data::mismatched(batch, settings.max_length)
                                : engine::data::Experience{});
  }
  return out;
}

int run_kto(RunContext& context) {
  algorithms::KtoConfig settings = context.config().kto;
  settings.max_length = context.max_length();
  auto data = context.loader<engine::data::UnpairedExample>(context.data_options());
  const auto& examples = data.dataset().examples;
  const auto good = static_cast<std::size_t>(
      std::ranges::count_if(examples, [](const auto& example) { return example.desirable; }));
  if (const auto odd = imbalance(settings.loss, good, examples.size() - good); !odd.empty())
    log_warning(odd);
  return run_on_rows(context, data, settings, kto_held_out(context, settings), algorithms::kto);
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
             " have a ratio of ", to_text(ratio, 2),
             " to 1; 1 to 1.33 is recommended: kto.desirable_weight from ", to_text(low, 2), " to ",
             to_text(low * 4 / 3, 2), ", or kto.undesirable_weight from ",
             to_text(loss.desirable_weight * of(good) / of(bad) * 3 / 4, 2), " to ",
             to_text(loss.desirable_weight * of(good) / of(bad), 2), " (not both)");
}

Recipe recipe_for(std::type_identity<algorithms::KtoConfig>) {
  return {
      .name = algorithms::KtoConfig::name,
      .summary = "Kahneman-Tversky optimization: desirable and undesirable answers, without pairs",
      .sections = {"kto", "eval"},
      .rows = engine::data::Purpose::unpaired,
      .roles = roles_with_reference<algorithms::KtoConfig>,
      .validate = validate_kto,
      .formula = kto_formula,
      .run = run_kto,
      .reference = [](const config::RunConfig& config) { return config.kto.reference; }};
}

}  // namespace troupe::launch::recipes
