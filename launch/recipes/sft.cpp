#include "launch/recipes/sft.h"

#include "engine/base/text.h"
#include "launch/recipes/held_out.h"

namespace troupe::launch {
namespace {

std::string sft_formula(const RunConfig& config) {
  const bool dft = config.sft.loss.kind == algorithms::SftLossKind::dft;
  return cat("L = - sum over trained tokens t of ", dft ? "sg(p(t)) " : "",
             "log p(t | the tokens before it)  /  trained tokens of the batch\n", "trained: ",
             config.sft.mask_prompt ? "the answers (every assistant turn), not the prompts"
                                    : "every token but the first of each row");
}

int run_sft(RunContext& context) {
  const algorithms::SftLoss& loss = context.config().sft.loss;
  auto data = context.loader<engine::data::SftExample>(context.data_options());
  const auto batch_of = [](const auto& batch) { return engine::data::to_experience(batch); };
  return run_on_rows(
      context, data, loss,
      held_out_batches(context, eval_options(context), engine::data::load_sft, batch_of),
      algorithms::sft);
}

}  // namespace

Recipe sft_recipe() {
  return {.name = "sft",
          .summary = "supervised fine-tuning: learn to write the answers of the data",
          .sections = {"sft", "eval"},
          .rows = engine::data::Purpose::sft,
          .validate = validate_eval,
          .formula = sft_formula,
          .run = run_sft,
          .grads_known = [](const RunConfig& config) {
            return config.sft.loss.needs().grad_is_input_independent;
          }};
}

}  // namespace troupe::launch
