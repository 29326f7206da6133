#include "algorithms/training/model_selection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/base/text/text.h"

namespace troupe::algorithms {
namespace {

constexpr std::string_view prefix = "eval/";
constexpr std::array<std::string_view, 3> lower_is_better{"eval/loss", "eval/nll", "eval/nll_loss"};
constexpr std::array<std::string_view, 10> higher_is_better{
    "eval/reward",         "eval/accuracy",           "eval/margin",
    "eval/rewards/chosen", "eval/rewards/accuracies", "eval/rewards/margins",
    "eval/logps/chosen",   "eval/log_odds_ratio",     "eval/log_odds_chosen",
    "eval/pass@1"};

// 1: higher is better, -1: lower is better, 0: unknown.
int known_direction(std::string_view name) {
  if (std::ranges::find(lower_is_better, name) != lower_is_better.end()) return -1;
  const bool of_rewards = name.starts_with("eval/pass@") ||
                          (name.starts_with("eval/rewards/") && name.ends_with("/mean"));
  return of_rewards || std::ranges::find(higher_is_better, name) != higher_is_better.end() ? 1 : 0;
}

// The value of the selected metric; nullopt for the metrics of a step without an evaluation.
std::optional<double> value_of(const Metrics& metrics, const std::string& wanted) {
  std::vector<std::string> names;
  for (const auto& [name, value] : metrics) {
    if (name == wanted) return value;
    if (name.starts_with(prefix)) names.push_back(name);
  }
  if (names.empty()) return std::nullopt;
  throw Failure({Errc::usage, cat("train.keep_best, train.early_stopping: the evaluation has no "
                                  "metric ",
                                  wanted, "; it has ", join(names, ", "))});
}

}  // namespace

Result<SelectionMetric> selection_metric(std::string_view text) {
  const bool lower = text.starts_with('-'), higher = text.starts_with('+');
  SelectionMetric metric{std::string(text.substr(lower || higher ? 1 : 0)), lower};
  if (!metric.name.starts_with(prefix) || metric.name.size() == prefix.size())
    return fail(Errc::usage, cat("expected a metric of the evaluation, such as eval/loss, found ",
                                 quote(metric.name)));
  if (lower || higher) return metric;
  const int known = known_direction(metric.name);
  if (known == 0)
    return fail(Errc::usage,
                cat("whether a lower or a higher ", metric.name, " is better is not known; write -",
                    metric.name, " (lower) or +", metric.name, " (higher)"));
  metric.lower = known < 0;
  return metric;
}

bool BestValue::observe(std::int64_t step, double value) {
  const bool better =
      step_ == 0 ? !std::isnan(value) : (metric_.lower ? value < value_ : value > value_);
  if (better) {
    value_ = value;
    step_ = step;
    since_ = 0;
  } else {
    ++since_;
  }
  return better;
}

Json BestValue::state() const {
  return Json::Object{{"metric", metric_.name},
                      {"lower", metric_.lower},
                      {"value", value_},
                      {"step", step_},
                      {"evaluations_since", since_}};
}

Result<> BestValue::restore(const Json& state, const std::string& where) {
  const auto name = get_string(state, "metric", where);
  const auto value = get_number(state, "value", where);
  const auto step = get_integer(state, "step", where);
  const auto since = get_integer(state, "evaluations_since", where);
  const Json* lower = state.find("lower");
  for (const auto* error : {name ? nullptr : &name.error(), value ? nullptr : &value.error(),
                            step ? nullptr : &step.error(), since ? nullptr : &since.error()})
    if (error) return fail(Errc::corrupt, error->what);
  if (*name != metric_.name || !lower || *lower != Json(metric_.lower)) return {};
  value_ = *value;
  step_ = *step;
  since_ = *since;
  return {};
}

ModelSelection::ModelSelection(std::optional<SelectionMetric> keep_best,
                               std::optional<SelectionMetric> early_stopping, std::int64_t patience)
    : patience_(patience) {
  if (keep_best) keep_best_.emplace(std::move(*keep_best));
  if (early_stopping) early_stopping_.emplace(std::move(*early_stopping));
}

void ModelSelection::observe(std::int64_t step, const Metrics& metrics) {
  for (auto* best : {&keep_best_, &early_stopping_}) {
    if (!*best) continue;
    if (const auto value = value_of(metrics, (*best)->metric().name))
      (*best)->observe(step, *value);
  }
}

std::string ModelSelection::reason() const {
  if (!early_stopping_) return "";
  const BestValue& best = *early_stopping_;
  return cat(best.metric().name, " has not improved for ", best.since(), " evaluations (best: ",
             best.step() > 0 ? cat(to_text(best.value(), 4), " at step ", best.step()) : "none",
             ")");
}

std::string ModelSelection::best_text() const {
  if (best_step() == 0) return "";
  return cat(keep_best_->metric().name, " ", to_text(keep_best_->value(), 4), " at step ",
             keep_best_->step());
}

Json ModelSelection::state() const {
  Json state;
  if (keep_best_) state.set("keep_best", keep_best_->state());
  if (early_stopping_) state.set("early_stopping", early_stopping_->state());
  return state;
}

Result<> ModelSelection::restore(const Json& state) {
  if (state.is_null()) return {};
  const std::pair<const char*, std::optional<BestValue>*> parts[] = {
      {"keep_best", &keep_best_}, {"early_stopping", &early_stopping_}};
  for (const auto& [name, best] : parts) {
    const Json* saved = state.find(name);
    if (saved && *best) RETURN_IF_ERROR((*best)->restore(*saved, cat("selection.", name)));
  }
  return {};
}

}  // namespace troupe::algorithms
