#include "launch/recipes/selection.h"

#include <algorithm>
#include <array>
#include <optional>

#include "algorithms/training/estimators.h"
#include "engine/base/text/text.h"
#include "launch/recipes/held_out.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/sampling.h"

namespace troupe::launch::recipes {
namespace {

using engine::data::Purpose;

std::vector<std::string> row_metric_names(const Recipe& recipe) {
  if (recipe.rows == Purpose::sft) return {"loss", "nll"};
  if (recipe.rows == Purpose::steps) return {"loss", "accuracy"};
  if (recipe.head != nullptr)
    return {"loss", "accuracy", "margin", "mean_reward", "min_reward", "max_reward"};
  std::vector<std::string> names{
      "loss",         "rewards/chosen", "rewards/rejected", "rewards/margins",
      "logps/chosen", "logps/rejected"};
  if (recipe.rows == Purpose::unpaired)
    names.emplace_back("kl");
  else
    names.insert(names.end(), {"rewards/accuracies", "nll_loss"});
  if (recipe.name == algorithms::OrpoConfig::name)
    names.insert(names.end(), {"log_odds_chosen", "log_odds_ratio"});
  return names;
}

std::vector<std::string> prompt_metric_names(const config::RunConfig& config) {
  std::vector<std::string> names{"reward"};
  for (const config::RewardRule& rule : config.reward)
    for (const char* statistic : {"mean", "std"})
      names.push_back(cat("rewards/", rule.label.empty() ? rule.rule : rule.label, "/", statistic));
  for (const std::int64_t k : algorithms::pass_ks(config.eval.samples))
    names.push_back(cat("pass@", k));
  for (const char* kind : {"length", "terminated_length"})
    for (const char* statistic : {"mean", "min", "max"})
      names.push_back(cat("completions/", statistic, "_", kind));
  names.emplace_back("completions/clipped_ratio");
  return names;
}

// A reward program may return further values: "eval/rewards/LABEL/NAME/mean".
bool may_be_a_part(const std::string& name, const config::RunConfig& config) {
  return std::ranges::any_of(config.reward, [&](const config::RewardRule& rule) {
    return is_program(rule) &&
           name.starts_with(cat("eval/rewards/", rule.label.empty() ? rule.rule : rule.label, "/"));
  });
}

void validate_metric(Validation& v, std::string_view key, const std::string& text) {
  if (text.empty()) return;
  if (!has_held_out(v.config))
    return v.problem(cat(v.named(key),
                         ": the run has no evaluation; set eval.path to held-out rows and "
                         "eval.every to the steps between evaluations"));
  const auto metric = algorithms::selection_metric(text);
  if (!metric) return v.problem(cat(v.named(key), ": ", metric.error().what));
  const auto known = eval_metric_names(v.config);
  if (std::ranges::find(known, metric->name) != known.end() ||
      may_be_a_part(metric->name, v.config))
    return;
  const std::string meant = nearest(metric->name, known);
  v.problem(cat(v.named(key), ": must be a metric of the evaluation: ", join(known, ", "),
                meant.empty() ? "" : cat("; did you mean ", meant, "?")));
}

}  // namespace

std::vector<std::string> eval_metric_names(const config::RunConfig& config) {
  const Recipe& recipe = recipe_of(config);
  auto names =
      recipe.rows == Purpose::prompts ? prompt_metric_names(config) : row_metric_names(recipe);
  for (std::string& name : names) name.insert(0, "eval/");
  return names;
}

void validate_selection(Validation& v) {
  const config::TrainConfig& t = v.config.train;
  if (t.early_stopping_metric.empty())
    v.unused("train.early_stopping.patience", "train.early_stopping.metric is empty");
  if (!find_recipe(v.config.algorithm)) return;
  validate_metric(v, "train.keep_best", t.keep_best);
  validate_metric(v, "train.early_stopping.metric", t.early_stopping_metric);
  if (has_held_out(v.config) && v.config.eval.every == 0)
    for (const auto& [key, text] : std::array<std::pair<std::string_view, const std::string*>, 2>{
             {{"train.keep_best", &t.keep_best},
              {"train.early_stopping.metric", &t.early_stopping_metric}}})
      if (!text->empty())
        v.warn(cat(v.named(key),
                   ": eval.every is 0, so only the last step is compared; set eval.every"));
}

Result<algorithms::ModelSelection> model_selection(const config::RunConfig& config) {
  std::optional<algorithms::SelectionMetric> keep_best, early_stopping;
  for (const auto& [text, metric] :
       std::array<std::pair<const std::string*, std::optional<algorithms::SelectionMetric>*>, 2>{
           {{&config.train.keep_best, &keep_best},
            {&config.train.early_stopping_metric, &early_stopping}}}) {
    if (text->empty()) continue;
    auto found = algorithms::selection_metric(*text);
    RETURN_IF_ERROR(found);
    *metric = std::move(*found);
  }
  return algorithms::ModelSelection(std::move(keep_best), std::move(early_stopping),
                                    config.train.early_stopping_patience);
}

}  // namespace troupe::launch::recipes
