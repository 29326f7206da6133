#include "launch/evaluation/task_result.h"

#include <algorithm>
#include <map>

#include "engine/base/random/sha256.h"
#include "engine/base/text/text.h"
#include "launch/evaluation/answer_rule.h"
#include "launch/evaluation/python_text.h"

namespace troupe::launch::evaluation {
namespace {

/// {"gen_args_0": {"arg_0": context, "arg_1": continuation}, ...}
Json arguments_of(const TaskRun& run, const TaskItem& item) {
  Json out = Json::Object{};
  std::size_t number = 0;
  const auto add = [&](Json first, std::optional<Json> second) {
    Json::Object one{{"arg_0", std::move(first)}};
    if (second) one.emplace_back("arg_1", std::move(*second));
    out.set(cat("gen_args_", number++), std::move(one));
  };
  if (run.task->output_type == OutputType::generate_until) {
    add(item.context, run.task->generation);
  } else if (run.task->output_type == OutputType::loglikelihood_rolling) {
    add(item.continuations.front(), std::nullopt);
  } else {
    for (std::size_t i = 0; i < item.continuations.size(); ++i)
      add(item.choices.empty() || i < item.choices.size() ? Json(item.context) : Json(""),
          Json(item.continuations[i]));
  }
  return out;
}

Json responses_of(const TaskRun& run, const ItemAnswer& answer) {
  Json::Array out;
  for (const Likelihood& each : answer.likelihoods) {
    const std::string sum = python_text(Json(each.logp));
    if (run.task->output_type == OutputType::loglikelihood_rolling)
      out.push_back(Json::Array{sum});
    else
      out.push_back(Json::Array{Json::Array{sum, each.greedy ? "True" : "False"}});
  }
  Json::Array texts;
  for (const std::string& text : answer.texts) texts.emplace_back(text);
  if (!texts.empty()) out.emplace_back(std::move(texts));
  return out;
}

Json sample_line(const TaskRun& run, std::size_t at, const std::string& filter,
                 const ItemScores& scores) {
  const TaskItem& item = run.items[at];
  const Json& row = run.rows->items[static_cast<std::size_t>(item.number)];
  const std::string target = python_text(item.target);
  Json::Array names;
  for (const auto& [name, value] : scores.values) names.emplace_back(name);
  Json out = Json::Object{{"doc_id", item.number}, {"doc", row}, {"target", target}};
  out.set("arguments", arguments_of(run, item))
      .set("resps", responses_of(run, run.answers[at]))
      .set("filtered_resps",
           scores.filtered.is_array() ? scores.filtered : Json(Json::Array{scores.filtered}))
      .set("filter", filter)
      .set("metrics", std::move(names))
      .set("doc_hash", text_hash(row.dump(2)))
      .set("prompt_hash", text_hash(item.context.empty() && !item.continuations.empty()
                                        ? item.continuations.front()
                                        : item.context))
      .set("target_hash", text_hash(target));
  for (const auto& [name, value] : scores.values)
    out.set(name,
            value.weight == 1 ? Json(value.value) : Json(Json::Array{value.value, value.weight}));
  return out;
}

const MetricConfig* config_of(const TaskConfig& task, const std::string& metric) {
  const std::string name = metric.starts_with("pass@") ? "pass_at_k" : metric;
  const auto found = std::ranges::find(task.metrics, name, &MetricConfig::name);
  return found == task.metrics.end() ? nullptr : &*found;
}

/// The values of each metric, in the order of the metrics.
class Values {
 public:
  void add(const std::string& metric, const ItemValue& value) {
    if (!values_.contains(metric)) order_.push_back(metric);
    values_[metric].push_back(value);
  }
  std::vector<MetricResult> results(const TaskConfig& task, const std::string& filter) const {
    std::vector<MetricResult> out;
    for (const std::string& metric : order_) {
      const auto& all = values_.at(metric);
      const MetricConfig* config = config_of(task, metric);
      const Aggregation how = config != nullptr ? config->aggregation : Aggregation::mean;
      MetricResult one{metric, filter, aggregate(how, all), standard_error(how, all)};
      if (config != nullptr) one.higher_is_better = config->higher_is_better;
      const auto whole = [](const ItemValue& v) { return v.value == 0 || v.value == 1; };
      if (how == Aggregation::mean && std::ranges::all_of(all, whole))
        one.passed = std::ranges::count(all, 1.0, &ItemValue::value);
      out.push_back(std::move(one));
    }
    return out;
  }

 private:
  std::vector<std::string> order_;
  std::map<std::string, std::vector<ItemValue>> values_;
};

Result<ItemScores> score_item(const TaskRun& run, std::size_t at, const FilterPipeline& filter,
                              const CodeCheck& check) {
  const TaskItem& item = run.items[at];
  const Json& row = run.rows->items[static_cast<std::size_t>(item.number)];
  const ItemAnswer& answer = run.answers[at];
  if (run.task->rule) {
    auto ruled = run.task->rule->evaluate(item, row, answer, check);
    RETURN_IF_ERROR(ruled);
    ItemScores out;
    out.filtered = std::move(ruled->filtered);
    out.values.push_back({"acc", {ruled->right ? 1.0 : 0.0}});
    out.no_answer = ruled->no_answer;
    return out;
  }
  if (run.task->output_type == OutputType::generate_until)
    return score_texts(*run.task, item, row, filter, answer.texts, check);
  return score_likelihoods(*run.task, item, row, answer.likelihoods);
}

/// Zero for every metric: the item counts as wrong.
ItemScores failed_item(const TaskConfig& task) {
  ItemScores out;
  out.filtered = "[invalid]";
  for (const MetricConfig& metric : task.metrics)
    out.values.push_back({metric.name == "pass_at_k" ? "pass@1" : metric.name, {0}});
  return out;
}

}  // namespace

std::string text_hash(std::string_view text) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(text)));
  return hash.finish();
}

TaskResult score_task(const TaskRun& run, const CodeCheck& check) {
  const TaskConfig& task = *run.task;
  TaskResult out{.name = task.name,
                 .alias = task.alias,
                 .version = task.version,
                 .num_fewshot = run.num_fewshot,
                 .original = std::ssize(run.rows->items),
                 .effective = std::ssize(run.items),
                 .truncated = run.truncated};
  std::vector<bool> unanswered(run.items.size()), wrong(run.items.size());
  std::string hashes;
  for (const FilterPipeline& filter : task.filters) {
    Values values;
    for (std::size_t at = 0; at < run.items.size(); ++at) {
      auto scores = score_item(run, at, filter, check);
      wrong[at] = wrong[at] || !scores;
      if (!scores) scores = failed_item(task);
      unanswered[at] = unanswered[at] || scores->no_answer;
      for (const auto& [metric, value] : scores->values) values.add(metric, value);
      out.samples.push_back(sample_line(run, at, filter.name, *scores));
      for (const char* key : {"doc_hash", "prompt_hash", "target_hash"})
        hashes += out.samples.back().find(key)->string();
    }
    if (task.counts_all_rows)
      for (std::int64_t rest = out.effective; rest < out.original; ++rest) values.add("acc", {0});
    for (MetricResult& each : values.results(task, filter.name))
      out.metrics.push_back(std::move(each));
    if (task.output_type != OutputType::generate_until) break;
  }
  if (task.counts_all_rows) out.effective = out.original;
  out.no_answer = std::ranges::count(unanswered, true);
  out.errors = std::ranges::count(wrong, true);
  out.hash = text_hash(hashes);
  return out;
}

}  // namespace troupe::launch::evaluation
