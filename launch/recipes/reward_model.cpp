#include "launch/recipes/reward_model.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "engine/data/layouts/steps.h"
#include "launch/recipes/held_out.h"

namespace troupe::launch::recipes {
namespace {

std::string orm_formula(const config::RunConfig& config) {
  const algorithms::OrmLoss& o = config.orm.loss;
  const std::string center = o.center > 0 ? cat(" + ", to_text(o.center), " (s_w + s_l)^2") : "";
  return cat("L = mean over pairs of ",
             o.kind == algorithms::OrmLossKind::log_exp ? "log(1 + exp(s_l - s_w))"
                                                        : "- log sigmoid(s_w - s_l - margin)",
             center,
             "\ns: the score head's output at the last token of prompt and answer; margin: the "
             "row's, or 0\n",
             "pairs with a sequence longer than train.max_length are dropped");
}

void prepare_orm(const config::RunConfig&, const engine::data::TextEncoder&,
                 engine::data::DataOptions& options) {
  options.encode.skip_longer = true;
}

algorithms::HeldOut held_out_scored_pairs(const RunContext& context) {
  auto options = eval_options(context);
  prepare_orm(context.config(), context.text(), options);
  return held_out_batches<engine::data::PairExample>(context, options,
                                                     engine::data::to_scored_pairs);
}

int run_orm(RunContext& context) {
  const algorithms::OrmLoss& loss = context.config().orm.loss;
  auto options = context.data_options();
  prepare_orm(context.config(), context.text(), options);
  auto data = context.loader<engine::data::PairExample>(options);
  const auto has_margin = [](const engine::data::PairExample& pair) {
    return pair.margin.has_value();
  };
  if (loss.kind == algorithms::OrmLossKind::log_exp &&
      std::ranges::any_of(data.dataset().examples, has_margin))
    throw Failure({Errc::usage,
                   "orm.loss = log_exp: rows of the data have a margin, which it would ignore; "
                   "choose bradley_terry, or map another column with data.columns.margin"});
  return run_on_rows(context, data, loss, held_out_scored_pairs(context), algorithms::orm);
}

bool prm_has_head(const config::RunConfig& config) {
  return config.prm.kind == algorithms::PrmKind::token_class;
}

ScoreHeadSpec prm_head(const config::RunConfig& config) {
  if (!prm_has_head(config)) return {};
  return {.labels = config.prm.classes, .bias = true, .init_std = config.prm.head_init_std};
}

void validate_prm(Validation& v) {
  validate_eval(v);
  if (prm_has_head(v.config)) {
    v.unused({"prm.placeholder", "prm.reward_tokens", "prm.whole_vocabulary"},
             "prm.kind is token_class");
    return;
  }
  v.unused({"prm.step_separator", "prm.classes", "prm.head_init_std"}, "prm.kind is placeholder");
  if (v.config.prm.loss.whole_vocabulary)
    v.unused("prm.float32", "prm.whole_vocabulary uses the softmax of the language model head");
  if (v.config.prm.reward_tokens.size() < 2)
    v.problem(cat(v.named("prm.reward_tokens"),
                  ": two or more are needed, that of a right step first; [\"+\", \"-\"] is usual"));
}

std::string prm_formula(const config::RunConfig& config) {
  const algorithms::PrmConfig& p = config.prm;
  const std::string steps = p.train_on_last_step_only ? "the last step of each row" : "every step";
  if (prm_has_head(config))
    return cat("L = mean over classified tokens of - log softmax(scores)[class]\nclassified: ",
               steps, ", at the last token of ", quote(p.step_separator),
               " behind it; scores: the score head's ", p.classes, " labels");
  std::vector<std::string> tokens;
  for (const auto& token : p.reward_tokens) tokens.push_back(quote(token));
  return cat("L = mean over classified tokens of - log p(reward token), p over ",
             p.loss.whole_vocabulary ? std::string("the whole vocabulary") : join(tokens, ", "),
             "\nclassified: ", steps, ", at the placeholder ", quote(p.placeholder),
             " itself, not at the token before it");
}

// All steps of the held-out rows, as in TRL, whatever is trained on.
algorithms::HeldOut held_out_steps(const RunContext& context, engine::data::StepOptions steps) {
  auto options = eval_options(context);
  steps.last_step_only = false;
  options.encode.steps = std::move(steps);
  return held_out_batches<engine::data::StepExample>(
      context, options, [](const auto& batch) { return engine::data::to_experience(batch); });
}

void prepare_prm(const config::RunConfig& config, const engine::data::TextEncoder& text,
                 engine::data::DataOptions& options) {
  options.encode.steps = value_or_throw(step_settings(config, text));
}

int run_prm(RunContext& context) {
  auto options = context.data_options();
  prepare_prm(context.config(), context.text(), options);
  const auto loss = value_or_throw(prm_settings(context.config(), options.encode.steps));
  auto data = context.loader<engine::data::StepExample>(options);
  return run_on_rows(context, data, loss, held_out_steps(context, options.encode.steps),
                     algorithms::prm);
}

}  // namespace

Result<engine::data::StepOptions> step_settings(const config::RunConfig& config,
                                                const engine::data::TextEncoder& text) {
  const algorithms::PrmConfig& p = config.prm;
  engine::data::StepOptions out{.separator = p.step_separator,
                                .last_step_only = p.train_on_last_step_only,
                                .classes = p.classes,
                                .tokens = {}};
  if (prm_has_head(config)) return out;
  auto tokens = engine::data::find_step_tokens(p.placeholder, p.reward_tokens, text);
  RETURN_IF_ERROR(tokens);
  out.tokens = std::move(*tokens);
  return out;
}

Result<algorithms::PrmLoss> prm_settings(const config::RunConfig& config,
                                         const engine::data::StepOptions& steps) {
  const bool whole = steps.tokens && config.prm.loss.whole_vocabulary;
  algorithms::PrmLoss loss;
  loss.float32 = config.prm.loss.float32 && !whole;
  if (steps.tokens) {
    loss.reward_tokens = steps.tokens->reward_ids;
    loss.whole_vocabulary = whole;
  }
  RETURN_IF_ERROR(loss.validate());
  return loss;
}

Recipe recipe_for(std::type_identity<algorithms::OrmConfig>) {
  return {.name = "orm",
          .summary =
              "outcome reward model: score the chosen answer of each pair above the rejected one",
          .sections = {"orm", "eval"},
          .rows = engine::data::Purpose::pairs,
          .prepare_rows = prepare_orm,
          .validate = validate_eval,
          .formula = orm_formula,
          .run = run_orm,
          .head = [](const config::RunConfig& config) {
            return ScoreHeadSpec{.labels = 1, .init_std = config.orm.head_init_std};
          }};
}

Recipe recipe_for(std::type_identity<algorithms::PrmConfig>) {
  return {.name = "prm",
          .summary = "process reward model: classify every step of a solution",
          .sections = {"prm", "eval"},
          .rows = engine::data::Purpose::steps,
          .prepare_rows = prepare_prm,
          .validate = validate_prm,
          .formula = prm_formula,
          .run = run_prm,
          .head = prm_head};
}

}  // namespace troupe::launch::recipes
