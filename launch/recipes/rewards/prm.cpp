#include "launch/recipes/rewards/prm.h"

#include "algorithms/reward_model.h"
#include "engine/base/text.h"
#include "engine/data/layouts/steps.h"
#include "launch/recipes/held_out.h"
#include "launch/recipes/run_context.h"

namespace troupe::launch {
namespace {

constexpr Field table[] = {
    {"prm.kind", [](RunConfig& c) { return Slot(&c.prm.kind); },
     "token_class: a score head judges the last token of each step's separator (TRL); placeholder: "
     "the language head predicts a reward "
     "token at the placeholder behind each step (Math-Shepherd, MindSpeed)",
     "token_class|placeholder", any},
    {"prm.step_separator", [](RunConfig& c) { return Slot(&c.prm.step_separator); },
     "token_class: the text that is put behind each step", "", any},
    {"prm.train_on_last_step_only",
     [](RunConfig& c) { return Slot(&c.prm.train_on_last_step_only); },
     "only the last step of each row is judged", "", any},
    {"prm.classes",
     [](RunConfig& c) { return Slot(&c.prm.classes); },
     "token_class: labels of the score head; 0 is wrong, 1 is right",
     "",
     {2, 1024}},
    {"prm.head_deviation", [](RunConfig& c) { return Slot(&c.prm.head_deviation); },
     "token_class: the score head that a language model gets at the start is drawn from a normal "
     "distribution this wide; 0: zeros",
     "", at_least_0},
    {"prm.placeholder", [](RunConfig& c) { return Slot(&c.prm.placeholder); },
     "placeholder: the text that marks where a step is judged; exactly one token", "", any},
    {"prm.reward_tokens", [](RunConfig& c) { return Slot(&c.prm.reward_tokens); },
     "placeholder: what a step may be judged to be, a right one first; each exactly one token", "",
     any},
    {"prm.whole_vocabulary", [](RunConfig& c) { return Slot(&c.prm.whole_vocabulary); },
     "placeholder: the softmax is over the whole vocabulary, not over the reward tokens alone", "",
     any},
    {"prm.float32", [](RunConfig& c) { return Slot(&c.prm.float32); },
     "the loss and its slopes are rounded to float32, as torch and so TRL compute them (1 - p "
     "keeps few digits where p is near 1); false: "
     "float64",
     "", any},
};

bool has_head(const RunConfig& config) {
  return config.prm.kind == "token_class";
}

RolesNeeded roles(const RunConfig&) {
  return {};
}

ScoreHeadWanted head(const RunConfig& config) {
  if (!has_head(config)) return {};
  return {.labels = static_cast<int>(config.prm.classes),
          .bias = true,
          .deviation = config.prm.head_deviation};
}

void judge(Judging& j) {
  judge_eval(j);
  if (has_head(j.config)) {
    for (const auto* key : {"prm.placeholder", "prm.reward_tokens", "prm.whole_vocabulary"})
      j.unused(key, "prm.kind is token_class");
    return;
  }
  for (const auto* key : {"prm.step_separator", "prm.classes", "prm.head_deviation"})
    j.unused(key, "prm.kind is placeholder");
  if (j.config.prm.whole_vocabulary)
    j.unused("prm.float32", "prm.whole_vocabulary takes the language head's own softmax");
  if (j.config.prm.reward_tokens.size() < 2)
    j.problem(cat(j.named("prm.reward_tokens"),
                  ": two or more are needed, a right step's first; [\"+\", \"-\"] is usual"));
}

std::string formula(const RunConfig& config) {
  const PrmConfig& p = config.prm;
  const std::string steps = p.train_on_last_step_only ? "the last step of each row" : "every step";
  if (has_head(config))
    return cat("L = mean over judged tokens of - log softmax(scores)[class]\njudged: ", steps,
               ", at the last token of ", quote(p.step_separator),
               " behind it; scores: the score head's ", p.classes, " labels");
  std::vector<std::string> tokens;
  for (const auto& token : p.reward_tokens) tokens.push_back(quote(token));
  return cat("L = mean over judged tokens of - log p(reward token), p over ",
             p.whole_vocabulary ? std::string("the whole vocabulary") : join(tokens, ", "),
             "\njudged: ", steps, ", at the placeholder ", quote(p.placeholder),
             " itself, not at the token before it");
}

// Every step of the held-out rows, as TRL judges them, whatever is trained on.
algorithms::HeldOut held_out_steps(const RunContext& context, engine::data::StepOptions steps) {
  auto options = eval_options(context);
  steps.last_step_only = false;
  options.encode.steps = std::move(steps);
  return held_out_batches(context, options, engine::data::load_steps,
                          [](const auto& batch) { return engine::data::to_experience(batch); });
}

int run(RunContext& context) {
  auto options = context.data_options();
  options.encode.steps = value_or_throw(step_settings(context.config(), context.text()));
  const auto loss = value_or_throw(prm_settings(context.config(), options.encode.steps));
  auto data = context.loader<engine::data::StepExample>(options);
  return run_on_rows(context, data, loss, held_out_steps(context, options.encode.steps),
                     algorithms::prm);
}

}  // namespace

Result<engine::data::StepOptions> step_settings(const RunConfig& config,
                                                const engine::data::TextEncoder& text) {
  const PrmConfig& p = config.prm;
  engine::data::StepOptions out{.separator = p.step_separator,
                                .last_step_only = p.train_on_last_step_only,
                                .classes = static_cast<std::int32_t>(p.classes),
                                .tokens = {}};
  if (has_head(config)) return out;
  auto tokens = engine::data::find_step_tokens(p.placeholder, p.reward_tokens, text);
  RETURN_IF_ERROR(tokens);
  out.tokens = std::move(*tokens);
  return out;
}

Result<algorithms::PrmLoss> prm_settings(const RunConfig& config,
                                         const engine::data::StepOptions& steps) {
  algorithms::PrmLoss loss;
  loss.float32 = config.prm.float32 && !(steps.tokens && config.prm.whole_vocabulary);
  if (steps.tokens)
    loss.reward_tokens = steps.tokens->reward_ids,
    loss.whole_vocabulary = config.prm.whole_vocabulary;
  RETURN_IF_ERROR(loss.validate());
  return loss;
}

Recipe prm_recipe() {
  return {"prm",
          "process reward model: judge every step of a solution",
          {"prm", "eval"},
          table,
          engine::data::Purpose::steps,
          roles,
          nullptr,
          judge,
          formula,
          run,
          head};
}

std::vector<Preset> prm_dialects() {
  return {
      {"trl",
       "prm",
       "PRMTrainer of TRL (experimental)",
       {{"prm.kind", "token_class"}, {"prm.float32", "true"}}},
      {"openrlhf", "prm", "OpenRLHF's train_prm (removed in 0.11)", {{"prm.kind", "placeholder"}}},
      {"mindspeed", "prm", "MindSpeed's --stage prm", {{"prm.kind", "placeholder"}}}};
}

}  // namespace troupe::launch
