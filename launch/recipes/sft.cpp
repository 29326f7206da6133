#include "launch/recipes/sft.h"

#include "algorithms/sft.h"
#include "engine/base/fields.h"
#include "engine/base/text.h"
#include "launch/recipes/held_out.h"
#include "launch/recipes/run_context.h"

namespace troupe::launch {
namespace {

constexpr Field table[] = {
    {"sft.loss", [](RunConfig& c) { return Slot(&c.sft.loss); },
     "nll: negative log-likelihood; dft: weighted by the token's own probability (dynamic "
     "fine-tuning)",
     "nll|dft", any},
    {"sft.mask_prompt", [](RunConfig& c) { return Slot(&c.sft.mask_prompt); },
     "train on the answers only (every assistant turn); false: on every token", "", any},
};

RolesNeeded roles(const RunConfig&) {
  return {};
}

void judge(Judging& j) {
  judge_eval(j);
}

std::string formula(const RunConfig& config) {
  return cat("L = - sum over trained tokens t of ", config.sft.loss == "dft" ? "sg(p(t)) " : "",
             "log p(t | the tokens before it)  /  trained tokens of the batch\n", "trained: ",
             config.sft.mask_prompt
                 ? "the answers (every assistant turn); prompts only condition them"
                 : "every token but the first of each row");
}

int run(RunContext& context) {
  const auto loss = value_or_throw(sft_settings(context.config()));
  auto data = context.loader<engine::data::SftExample>(context.data_options());
  const auto batch_of = [](const auto& batch) { return engine::data::to_experience(batch); };
  return run_on_rows(
      context, data, loss,
      held_out_batches(context, eval_options(context), engine::data::load_sft, batch_of),
      algorithms::sft);
}

}  // namespace

Result<algorithms::SftLoss> sft_settings(const RunConfig& config) {
  return fields_from_json<algorithms::SftLoss>(Json::Object{{"loss", config.sft.loss}}, "sft");
}

Recipe sft_recipe() {
  return {"sft",
          "supervised fine-tuning: learn to write the answers of the data",
          {"sft", "eval"},
          table,
          engine::data::Purpose::sft,
          roles,
          nullptr,
          judge,
          formula,
          run,
          nullptr,
          [](const RunConfig& config) {
            return value_or_throw(sft_settings(config)).needs().grad_is_input_independent;
          }};
}

}  // namespace troupe::launch
