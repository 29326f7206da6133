#include "launch/evaluation/report.h"

#include <algorithm>
#include <set>

#include "algorithms/training/estimators.h"
#include "engine/base/text/text.h"
#include "launch/evaluation/text_table.h"

namespace troupe::launch::evaluation {
namespace {

/// The tasks of a group and of the groups in it.
void add_leaves(const GroupConfig& group, const std::vector<GroupConfig>& groups,
                std::vector<std::string>& out) {
  for (const std::string& member : group.members) {
    const auto inner = std::ranges::find(groups, member, &GroupConfig::name);
    if (inner != groups.end())
      add_leaves(*inner, groups, out);
    else
      out.push_back(member);
  }
}

std::vector<const TaskResult*> tasks_of(const GroupConfig& group,
                                        const std::vector<GroupConfig>& groups,
                                        const std::vector<TaskResult>& tasks) {
  std::vector<std::string> names;
  add_leaves(group, groups, names);
  std::vector<const TaskResult*> out;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(tasks, name, &TaskResult::name);
    if (found != tasks.end()) out.push_back(&*found);
  }
  return out;
}

const MetricResult* find_metric(const TaskResult& task, const std::string& metric,
                                const std::string& filter) {
  for (const MetricResult& each : task.metrics)
    if (each.metric == metric && each.filter == filter) return &each;
  return nullptr;
}

std::vector<std::string> filters_of(const GroupMetric& metric,
                                    const std::vector<const TaskResult*>& members) {
  if (!metric.filters.empty()) return metric.filters;
  std::set<std::string> out;
  for (const TaskResult* task : members)
    for (const MetricResult& each : task->metrics)
      if (each.metric == metric.name) out.insert(each.filter);
  return {out.begin(), out.end()};
}

Json error_of(const std::optional<double>& error) {
  return error ? Json(*error) : Json("N/A");
}

std::optional<algorithms::Interval> interval_of(const TaskResult& task,
                                                const MetricResult& metric) {
  if (!metric.passed || task.effective < 1) return std::nullopt;
  return algorithms::wilson_interval(*metric.passed, task.effective);
}

/// An entry of "results".
Json entry_of(const TaskResult& task) {
  Json out =
      Json::Object{{"name", task.name}, {"alias", task.alias}, {"sample_len", task.effective}};
  for (const MetricResult& each : task.metrics) {
    out.set(cat(each.metric, ',', each.filter), each.value);
    out.set(cat(each.metric, "_stderr,", each.filter), error_of(each.error));
  }
  return out;
}

Json counts_of(const std::vector<TaskResult>& tasks) {
  Json out = Json::Object{};
  for (const TaskResult& task : tasks) {
    Json intervals = Json::Object{};
    for (const MetricResult& each : task.metrics)
      if (const auto found = interval_of(task, each))
        intervals.set(cat(each.metric, ',', each.filter), Json::Array{found->low, found->high});
    out.set(task.name, Json::Object{{"truncated", task.truncated},
                                    {"no_answer", task.no_answer},
                                    {"errors", task.errors},
                                    {"wilson_95", std::move(intervals)}});
  }
  return out;
}

Json better_of(const TaskResult& task) {
  Json out = Json::Object{};
  for (const MetricResult& each : task.metrics) out.set(each.metric, each.higher_is_better);
  return out;
}

using Row = std::vector<std::string>;

void add_lines(const TaskResult& task, int depth, std::vector<Row>& rows) {
  std::string name =
      std::string(static_cast<std::size_t>(depth), ' ') + (depth > 0 ? "- " : "") + task.alias;
  for (const MetricResult& each : task.metrics) {
    const auto interval = interval_of(task, each);
    rows.push_back(
        {name, each.filter, std::to_string(task.num_fewshot),
         cat(each.metric, each.higher_is_better ? " ↑" : " ↓"), std::to_string(task.effective),
         to_text(each.value, 4), each.error ? "± " + to_text(*each.error, 4) : "",
         interval ? cat(to_text(interval->low, 4), " to ", to_text(interval->high, 4)) : ""});
    name = "";
  }
  if (task.metrics.empty()) rows.push_back({name, "", "", "", "", "", "", ""});
}

/// Groups, each with its members below it, then the other tasks.
class TableRows {
 public:
  TableRows(const TaskSelection& selection, const std::vector<TaskResult>& tasks)
      : selection_(selection), tasks_(tasks) {}

  std::vector<Row> rows() {
    rows_ = {{"task", "filter", "n-shot", "metric", "items", "value", "stderr", "95 % (Wilson)"}};
    std::set<std::string> inside;
    for (const GroupConfig& group : selection_.groups)
      inside.insert(group.members.begin(), group.members.end());
    for (const GroupConfig& group : selection_.groups)
      if (!inside.contains(group.name)) add(group.name, 0);
    for (const TaskResult& task : tasks_)
      if (!inside.contains(task.name)) add(task.name, 0);
    return std::move(rows_);
  }

 private:
  void add(const std::string& name, int depth) {
    const auto group = std::ranges::find(selection_.groups, name, &GroupConfig::name);
    if (group != selection_.groups.end()) {
      add_lines(group_result(*group, selection_.groups, tasks_), depth, rows_);
      for (const std::string& member : group->members) add(member, depth + 1);
      return;
    }
    const auto task = std::ranges::find(tasks_, name, &TaskResult::name);
    if (task != tasks_.end()) add_lines(*task, depth, rows_);
  }

  const TaskSelection& selection_;
  const std::vector<TaskResult>& tasks_;
  std::vector<Row> rows_;
};

}  // namespace

TaskResult group_result(const GroupConfig& group, const std::vector<GroupConfig>& groups,
                        const std::vector<TaskResult>& tasks) {
  const auto members = tasks_of(group, groups, tasks);
  TaskResult out{.name = group.name, .alias = group.alias, .version = group.version};
  for (const TaskResult* task : members) {
    out.effective += task->effective;
    out.original += task->original;
    out.num_fewshot = task->num_fewshot;
  }
  for (const GroupMetric& metric : group.metrics)
    for (const std::string& filter : filters_of(metric, members)) {
      std::vector<GroupPart> parts;
      MetricResult one{metric.name, filter};
      std::int64_t passed = 0;
      bool whole = metric.weight_by_size;
      for (const TaskResult* task : members)
        if (const MetricResult* found = find_metric(*task, metric.name, filter)) {
          parts.push_back({found->value, found->error, task->effective});
          one.higher_is_better = found->higher_is_better;
          whole = whole && found->passed.has_value();
          passed += found->passed.value_or(0);
        }
      if (parts.empty()) continue;
      one.value = group_score(parts, metric.weight_by_size);
      one.error = group_error(parts, metric.weight_by_size);
      if (whole && parts.size() == members.size()) one.passed = passed;
      out.metrics.push_back(std::move(one));
    }
  return out;
}

Json results_json(const TaskSelection& selection, const std::vector<TaskResult>& tasks,
                  const Json& config) {
  Json results = Json::Object{}, groups = Json::Object{}, members = Json::Object{},
       configs = Json::Object{}, versions = Json::Object{}, shots = Json::Object{},
       better = Json::Object{}, samples = Json::Object{}, hashes = Json::Object{};
  const auto add = [&](const TaskResult& each) {
    results.set(each.name, entry_of(each));
    versions.set(each.name, each.version);
    shots.set(each.name, each.num_fewshot);
    better.set(each.name, better_of(each));
  };
  for (const TaskResult& task : tasks) {
    add(task);
    samples.set(task.name,
                Json::Object{{"original", task.original}, {"effective", task.effective}});
    hashes.set(task.name, task.hash);
  }
  for (const TaskConfig& task : selection.tasks) configs.set(task.name, task.keys);
  for (const GroupConfig& group : selection.groups) {
    const TaskResult result = group_result(group, selection.groups, tasks);
    add(result);
    if (!group.metrics.empty()) groups.set(group.name, entry_of(result));
    Json::Array names;
    for (const std::string& member : group.members) names.emplace_back(member);
    members.set(group.name, std::move(names));
  }
  Json out = Json::Object{{"results", std::move(results)}};
  if (!groups.object().empty()) out.set("groups", std::move(groups));
  out.set("group_subtasks", std::move(members)).set("configs", std::move(configs));
  out.set("versions", std::move(versions)).set("n-shot", std::move(shots));
  out.set("higher_is_better", std::move(better)).set("n-samples", std::move(samples));
  out.set("config", config).set("task_hashes", std::move(hashes));
  out.set("troupe", counts_of(tasks));
  return out;
}

std::string results_table(const TaskSelection& selection, const std::vector<TaskResult>& tasks) {
  std::string out = text_table(TableRows(selection, tasks).rows(), 4);
  for (const TaskResult& task : tasks)
    for (const auto& [count, what] :
         {std::pair{task.truncated, "had a context that was cut to the model's length"},
          std::pair{task.no_answer, "gave no answer that a filter finds, and count as wrong"},
          std::pair{task.errors, "could not be scored, and count as wrong"}})
      if (count > 0)
        out += cat(task.name, ": ", count, " of ", task.effective, " items ", what, '\n');
  return out;
}

}  // namespace troupe::launch::evaluation
