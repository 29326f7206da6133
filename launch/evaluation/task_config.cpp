#include "launch/evaluation/task_config.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "launch/evaluation/answer_filters.h"
#include "launch/evaluation/bbh_examples.h"
#include "launch/evaluation/doc_functions.h"

namespace troupe::launch::evaluation {
namespace {

/// Reads the keys of a file; the first wrong one is reported.
class Keys {
 public:
  explicit Keys(const TaskText& text) : text_(text) {}

  const Json* find(std::string_view key) const {
    const Json* found = text_.keys.find(key);
    return found != nullptr && found->is_null() ? nullptr : found;
  }
  std::string where(const std::string& key) const {
    const auto found = text_.where.find(key);
    return found == text_.where.end() ? text_.file : found->second;
  }
  template <class... Parts>
  void wrong(const std::string& key, const Parts&... parts) {
    if (!error_) error_ = Error{Errc::usage, cat(where(key), ": ", key, ": ", parts...)};
  }
  void text(const std::string& key, std::string& out) {
    const Json* found = find(key);
    if (found == nullptr) return;
    if (found->is_string())
      out = found->string();
    else
      wrong(key, "expected a text, found ", found->type_name());
  }
  void number(const std::string& key, std::int64_t& out) {
    const Json* found = find(key);
    if (found == nullptr) return;
    if (found->is_integer() && found->integer() >= 0)
      out = found->integer();
    else
      wrong(key, "expected a whole number of at least 0, found ", found->dump());
  }
  template <class Names>
  void function(const std::string& key, std::string& out, const Names& names) {
    text(key, out);
    if (out.empty() || std::ranges::find(names, out) != names.end()) return;
    std::vector<std::string> known;
    for (const auto& name : names) known.emplace_back(name);
    wrong(key, "no built-in function ", quote(out), "; there are ", join(known, ", "));
  }
  Result<> result() const {
    if (error_) return fail(*error_);
    return {};
  }

 private:
  const TaskText& text_;
  std::optional<Error> error_;
};

std::string text_of(const Json& object, std::string_view key, std::string otherwise = "") {
  const Json* found = object.find(key);
  return found != nullptr && found->is_string() ? found->string() : otherwise;
}

Json without(const Json& object, std::initializer_list<std::string_view> keys) {
  Json::Object out;
  for (const auto& [name, value] : object.object())
    if (std::ranges::find(keys, name) == keys.end()) out.emplace_back(name, value);
  return out;
}

struct KnownMetric {
  std::string_view name;
  Aggregation aggregation;
  bool higher_is_better;
};
constexpr std::array<KnownMetric, 11> known_metrics = {{
    {"acc", Aggregation::mean, true},
    {"acc_norm", Aggregation::mean, true},
    {"acc_bytes", Aggregation::mean, true},
    {"acc_mutual_info", Aggregation::mean, true},
    {"brier_score", Aggregation::mean, false},
    {"exact_match", Aggregation::mean, true},
    {"pass_at_k", Aggregation::mean, true},
    {"perplexity", Aggregation::perplexity, false},
    {"word_perplexity", Aggregation::weighted_perplexity, false},
    {"byte_perplexity", Aggregation::weighted_perplexity, false},
    {"bits_per_byte", Aggregation::bits_per_byte, false},
}};

void read_metric(Keys& keys, const Json& entry, TaskConfig& task) {
  const std::string name = text_of(entry, "metric");
  const auto known = std::ranges::find(known_metrics, name, &KnownMetric::name);
  if (known == known_metrics.end()) {
    std::vector<std::string> names;
    for (const KnownMetric& each : known_metrics) names.emplace_back(each.name);
    return keys.wrong("metric_list", "no metric ", quote(entry.dump()), "; there are ",
                      join(names, ", "));
  }
  MetricConfig out{.name = name,
                   .aggregation = known->aggregation,
                   .higher_is_better = known->higher_is_better,
                   .settings = without(entry, {"metric", "aggregation", "higher_is_better"})};
  if (const std::string how = text_of(entry, "aggregation"); !how.empty()) {
    const auto names = names_of(Aggregation());
    const auto found = std::ranges::find(names, how);
    if (found == names.end()) return keys.wrong("metric_list", "no aggregation ", quote(how));
    out.aggregation = static_cast<Aggregation>(found - names.begin());
  }
  if (const Json* better = entry.find("higher_is_better"); better && better->is_bool())
    out.higher_is_better = better->boolean();
  task.metrics.push_back(std::move(out));
}

void default_metrics(TaskConfig& task) {
  const auto add = [&](std::string_view name) {
    const auto known = std::ranges::find(known_metrics, name, &KnownMetric::name);
    task.metrics.push_back({std::string(name), known->aggregation, known->higher_is_better});
  };
  switch (task.output_type) {
    case OutputType::multiple_choice:
      add("acc");
      return add("acc_norm");
    case OutputType::generate_until:
      return add("exact_match");
    case OutputType::loglikelihood:
      add("perplexity");
      return add("acc");
    case OutputType::loglikelihood_rolling:
      add("word_perplexity");
      add("byte_perplexity");
      return add("bits_per_byte");
  }
}

void read_metrics(Keys& keys, TaskConfig& task) {
  const Json* list = keys.find("metric_list");
  if (list == nullptr) return default_metrics(task);
  if (!list->is_array()) return keys.wrong("metric_list", "expected a list");
  for (const Json& entry : list->array()) read_metric(keys, entry, task);
}

void read_filters(Keys& keys, TaskConfig& task) {
  const Json* list = keys.find("filter_list");
  if (list == nullptr) {
    task.filters = {{"none", {{.function = "take_first"}}}};
    return;
  }
  if (!list->is_array()) return keys.wrong("filter_list", "expected a list");
  for (const Json& entry : list->array()) {
    FilterPipeline pipeline{text_of(entry, "name"), {}};
    const Json* steps = entry.find("filter");
    if (pipeline.name.empty() || steps == nullptr || !steps->is_array())
      return keys.wrong("filter_list", "expected entries with name and filter");
    for (const Json& step : steps->array())
      pipeline.steps.push_back({text_of(step, "function"),
                                step.is_object() ? without(step, {"function"}) : Json::Object{}});
    if (const auto checked = check_filter(pipeline); !checked)
      return keys.wrong("filter_list", checked.error().what);
    task.filters.push_back(std::move(pipeline));
  }
}

void read_fewshot(Keys& keys, TaskConfig& task) {
  keys.text("fewshot_split", task.fewshot.split);
  const Json* given = keys.find("fewshot_config");
  if (given == nullptr) return;
  const std::vector<std::string> known = {
      "sampler",       "split",         "samples",          "doc_to_text",
      "doc_to_choice", "doc_to_target", "target_delimiter", "fewshot_delimiter"};
  if (!given->is_object()) return keys.wrong("fewshot_config", "expected keys");
  for (const auto& [name, value] : given->object())
    if (std::ranges::find(known, name) == known.end())
      return keys.wrong("fewshot_config", quote(name), " is not supported; there are ",
                        join(known, ", "));
  task.fewshot.sampler = text_of(*given, "sampler", "default");
  if (task.fewshot.sampler != "default" && task.fewshot.sampler != "first_n")
    keys.wrong("fewshot_config", "no sampler ", quote(task.fewshot.sampler),
               "; there are default and first_n");
  task.fewshot.split = text_of(*given, "split", task.fewshot.split);
  if (const Json* samples = given->find("samples")) {
    const bool rows = samples->is_array()
                          ? std::ranges::all_of(samples->array(), &Json::is_object)
                          : *samples == Json(bbh_reasoning) || *samples == Json(bbh_answers);
    if (!rows)
      keys.wrong("fewshot_config", "samples: expected a list of rows, ", bbh_reasoning, " or ",
                 bbh_answers);
    task.fewshot.samples = *samples;
  }
  const auto copy = [&](std::string_view name, Json& out) {
    if (const Json* found = given->find(name)) out = *found;
  };
  copy("doc_to_text", task.fewshot.text);
  copy("doc_to_choice", task.fewshot.choice);
  copy("doc_to_target", task.fewshot.target);
  if (const Json* found = given->find("target_delimiter"); found && found->is_string())
    task.fewshot.target_delimiter = found->string();
  if (const Json* found = given->find("fewshot_delimiter"); found && found->is_string())
    task.fewshot.fewshot_delimiter = found->string();
}

void read_dataset(Keys& keys, TaskConfig& task) {
  keys.text("dataset_path", task.dataset_path);
  keys.text("dataset_name", task.dataset_name);
  keys.text("training_split", task.training_split);
  keys.text("validation_split", task.validation_split);
  keys.text("test_split", task.test_split);
  if (const Json* given = keys.find("dataset_kwargs"); given != nullptr)
    if (const Json* files = given->find("data_files")) task.data_files = *files;
  keys.function("process_docs", task.process_docs, document_functions());
  keys.function("process_results", task.process_results, result_functions());
  if (task.dataset_path.empty()) keys.wrong("dataset_path", "a task needs one");
  if (task.evaluated_split().empty())
    keys.wrong("test_split", "a task needs a test_split or a validation_split");
}

void read_texts(Keys& keys, TaskConfig& task) {
  const auto copy = [&](const std::string& key, Json& out) {
    if (const Json* found = keys.find(key)) out = *found;
  };
  copy("doc_to_text", task.text);
  copy("doc_to_target", task.target);
  copy("doc_to_choice", task.choice);
  if (!task.text.is_string()) keys.wrong("doc_to_text", "expected a column or a template");
  if (task.target.is_null()) keys.wrong("doc_to_target", "a task needs one");
  if (task.output_type == OutputType::multiple_choice && task.choice.is_null())
    keys.wrong("doc_to_choice", "a task of multiple choice needs one");
  keys.text("description", task.description);
  keys.text("target_delimiter", task.target_delimiter);
  keys.text("fewshot_delimiter", task.fewshot_delimiter);
  if (keys.find("gen_prefix") != nullptr) keys.text("gen_prefix", task.gen_prefix.emplace());
}

std::vector<std::string> names_in(Keys& keys, const std::string& key) {
  const Json* given = keys.find(key);
  if (given == nullptr) return {};
  std::vector<std::string> out;
  for (const Json& each : given->is_array() ? given->array() : Json::Array{*given}) {
    if (each.is_string())
      out.push_back(each.string());
    else
      keys.wrong(key,
                 "expected names; tasks within a group are not supported, write them as files");
  }
  return out;
}

Json version_in(const Keys& keys) {
  const Json* metadata = keys.find("metadata");
  const Json* version = metadata != nullptr ? metadata->find("version") : nullptr;
  return version != nullptr ? *version : Json("Yaml");
}

}  // namespace

Result<TaskConfig> task_config(const TaskText& text) {
  Keys keys(text);
  TaskConfig task;
  task.where = text.file;
  task.keys = text.keys;
  keys.text("task", task.name);
  if (task.name.empty()) keys.wrong("task", "a task file needs a name");
  task.alias = task.name;
  keys.text("task_alias", task.alias);
  task.tags = names_in(keys, "tag");
  std::string type = "generate_until";
  keys.text("output_type", type);
  const auto types = names_of(OutputType());
  const auto found = std::ranges::find(types, type);
  if (found == types.end())
    keys.wrong("output_type", "no type ", quote(type));
  else
    task.output_type = static_cast<OutputType>(found - types.begin());
  read_dataset(keys, task);
  read_texts(keys, task);
  read_metrics(keys, task);
  read_filters(keys, task);
  read_fewshot(keys, task);
  if (keys.find("num_fewshot") != nullptr) keys.number("num_fewshot", task.num_fewshot.emplace());
  keys.number("repeats", task.repeats);
  if (const Json* given = keys.find("generation_kwargs")) task.generation = *given;
  if (!task.generation.is_object()) keys.wrong("generation_kwargs", "expected keys");
  if (const Json* code = keys.find("unsafe_code"))
    task.runs_code = code->is_bool() && code->boolean();
  const auto runs = [](const MetricConfig& metric) { return metric.name == "pass_at_k"; };
  task.runs_code = task.runs_code || std::ranges::any_of(task.metrics, runs);
  task.version = version_in(keys);
  RETURN_IF_ERROR(keys.result());
  return task;
}

Result<GroupConfig> group_config(const TaskText& text) {
  Keys keys(text);
  GroupConfig group;
  group.where = text.file;
  keys.text("group", group.name);
  group.alias = group.name;
  keys.text("group_alias", group.alias);
  group.members = names_in(keys, "task");
  if (group.members.empty()) keys.wrong("task", "a group needs the names of its tasks");
  if (const Json* list = keys.find("aggregate_metric_list"); list && list->is_array())
    for (const Json& entry : list->array()) {
      GroupMetric metric{text_of(entry, "metric")};
      if (const Json* by = entry.find("weight_by_size"); by && by->is_bool())
        metric.weight_by_size = by->boolean();
      if (const Json* filters = entry.find("filter_list"))
        for (const Json& each : filters->is_array() ? filters->array() : Json::Array{*filters})
          if (each.is_string()) metric.filters.push_back(each.string());
      group.metrics.push_back(std::move(metric));
    }
  group.version = version_in(keys);
  RETURN_IF_ERROR(keys.result());
  return group;
}

}  // namespace troupe::launch::evaluation
