#include "engine/base/text.h"
#include "launch/recipes/held_out.h"
#include "launch/recipes/preference/reference_free.h"
#include "launch/recipes/valid_loss.h"

namespace troupe::launch {
namespace {

constexpr Field table[] = {
    {"orpo.beta", [](RunConfig& c) { return Slot(&c.orpo.beta); },
     "weight of the odds ratio (the paper's lambda)", "", above_0},
    {"orpo.nll_on_prompt", [](RunConfig& c) { return Slot(&c.orpo.nll_on_prompt); },
     "the likelihood is of prompt and chosen answer (TRL); false: of the answer", "", any},
};

RolesNeeded roles(const RunConfig&) {
  return {};
}

void judge(Judging& j) {
  judge_eval(j);
  if (const auto settings = orpo_settings(j.config); !settings) j.problem(settings.error().what);
}

std::string formula(const RunConfig& config) {
  const OrpoConfig& o = config.orpo;
  return cat("L = mean over the chosen answers' tokens",
             o.nll_on_prompt ? ", their prompts' too," : "",
             " of - log p  +  mean over pairs of - ", to_text(o.beta),
             " log sigmoid(log odds(y_w) - log odds(y_l))\nlog odds(y) = x - log(1 - e^x),  x = "
             "mean over the answer's tokens of ",
             "log p\n");
}

int run(RunContext& context) {
  const auto settings = value_or_throw(orpo_settings(context.config()));
  return run_on_pairs(context, settings, algorithms::orpo, settings.nll_on_prompt);
}

}  // namespace

Result<algorithms::OrpoConfig> orpo_settings(const RunConfig& config) {
  const auto loss =
      valid_loss<algorithms::OrpoLoss>(Json::Object{{"beta", config.orpo.beta}}, "orpo");
  RETURN_IF_ERROR(loss);
  return algorithms::OrpoConfig{*loss, config.orpo.nll_on_prompt};
}

Recipe orpo_recipe() {
  return {"orpo",
          "odds ratio preference optimization: fine-tuning on the chosen answers that also moves "
          "the odds, without a reference",
          {"orpo", "eval"},
          table,
          engine::data::Purpose::pairs,
          roles,
          nullptr,
          judge,
          formula,
          run};
}

}  // namespace troupe::launch
