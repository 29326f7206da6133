#include "launch/recipes/sft.h"

#include "algorithms/sft.h"
#include "engine/base/fields.h"
#include "engine/base/text.h"
#include "launch/recipes/held_out.h"
#include "launch/run/stage.h"

namespace troupe::launch {
namespace {

constexpr Field table[] = {
    {"sft.loss", [](RunConfig& c) { return Slot(&c.sft.loss); },
     "nll: negative log-likelihood; dft: weighted by the token's own probability (dynamic fine-tuning)", "nll|dft", any},
    {"sft.mask_prompt", [](RunConfig& c) { return Slot(&c.sft.mask_prompt); },
     "train on the answers only (every assistant turn); false: on every token", "", any},
};

RolesNeeded roles(const RunConfig&) { return {}; }

void judge(Judging& j) { judge_eval(j); }

std::string formula(const RunConfig& config) {
  return cat(
      "L = - sum over trained tokens t of ", config.sft.loss == "dft" ? "sg(p(t)) " : "",
      "log p(t | the tokens before it)  /  trained tokens of the batch\n", "trained: ",
      config.sft.mask_prompt ? "the answers (every assistant turn); prompts only condition them" : "every token but the first of each row");
}

algorithms::HeldOut held_out_rows(const Stage& stage) {
  algorithms::HeldOut held_out{.batches = {}, .every = stage.config().eval.every};
  if (stage.config().eval.path.empty()) return held_out;
  const auto rows = value_or_throw(engine::data::load_sft(eval_options(stage), stage.text()));
  for (const auto& batch : algorithms::in_batches(rows.examples, stage.config().train.batch_size))
    held_out.batches.push_back(engine::data::to_experience(batch));
  return held_out;
}

int run(Stage& stage) {
  auto data = stage.loader<engine::data::SftExample>(stage.data_options());
  auto held_out = held_out_rows(stage);
  auto actors = stage.cluster();
  const auto plan = stage.begin(data.batches());
  return stage.drive(algorithms::sft(actors, data, plan, value_or_throw(sft_settings(stage.config())), std::move(held_out)), plan);
}

}  // namespace

Result<algorithms::SftLoss> sft_settings(const RunConfig& config) {
  return fields_from_json<algorithms::SftLoss>(Json::Object{{"kind", config.sft.loss}}, "sft");
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
          run};
}

}  // namespace troupe::launch
