#include "launch/evaluation/comparison.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "algorithms/training/estimators.h"
#include "engine/base/text/text.h"
#include "engine/data/readers/row_reader.h"
#include "launch/evaluation/text_table.h"

namespace troupe::launch::evaluation {
namespace {

namespace fs = std::filesystem;

/// The newest file of samples of each task.
Result<std::map<std::string, std::string>> sample_files(const std::string& folder) {
  constexpr std::string_view begin = "samples_", end = ".jsonl";
  std::map<std::string, std::string> out;
  std::error_code failed;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder, failed))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);  // the date follows the name of the task
  for (const std::string& name : names) {
    const auto date = name.rfind('_');
    if (name.starts_with(begin) && name.ends_with(end) && date > begin.size())
      out[name.substr(begin.size(), date - begin.size())] = (fs::path(folder) / name).string();
  }
  if (failed || out.empty())
    return fail(Errc::not_found,
                cat(folder, ": no samples_*.jsonl; evaluate with --output and --log-samples"));
  return out;
}

struct Key {
  std::string filter, metric;
  auto operator<=>(const Key&) const = default;
};
struct Sample {
  std::string hash;
  double value = 0;
};
using Samples = std::map<Key, std::map<std::int64_t, Sample>>;

Result<Samples> read_samples(const std::string& path) {
  auto reader = engine::data::open_rows(path);
  RETURN_IF_ERROR(reader);
  Samples out;
  for (;;) {
    const auto row = (*reader)->next();
    RETURN_IF_ERROR(row);
    if (!*row) return out;
    const Json& line = (*row)->value;
    const Json *number = line.find("doc_id"), *filter = line.find("filter"),
               *metrics = line.find("metrics"), *prompt = line.find("prompt_hash"),
               *target = line.find("target_hash");
    const bool known = number && number->is_integer() && filter && filter->is_string() && metrics &&
                       metrics->is_array() && prompt && prompt->is_string() && target &&
                       target->is_string();
    if (!known) return fail(Errc::bad_input, cat((*row)->where(), ": no line of samples_*.jsonl"));
    for (const Json& metric : metrics->array()) {
      const Json* value = metric.is_string() ? line.find(metric.string()) : nullptr;
      if (value != nullptr && value->is_number())
        out[{filter->string(), metric.string()}][number->integer()] = {
            prompt->string() + target->string(), value->number()};
    }
  }
}

Result<PairedDifference> paired(const std::string& task, const Key& key,
                                const std::map<std::int64_t, Sample>& first,
                                const std::map<std::int64_t, Sample>& second) {
  PairedDifference out{.task = task, .filter = key.filter, .metric = key.metric};
  std::vector<double> differences;
  std::int64_t b = 0, c = 0;
  bool whole = true;
  for (const auto& [number, one] : first) {
    const auto found = second.find(number);
    if (found == second.end()) continue;
    const Sample& other = found->second;
    if (other.hash != one.hash)
      return fail(Errc::bad_input, cat(task, ", item ", number,
                                       ": the two evaluations have "
                                       "different prompts or targets"));
    differences.push_back(other.value - one.value);
    out.first += one.value;
    out.second += other.value;
    b += one.value == 1 && other.value == 0 ? 1 : 0;
    c += one.value == 0 && other.value == 1 ? 1 : 0;
    for (const double value : {one.value, other.value}) whole = whole && (value == 0 || value == 1);
  }
  out.items = std::ssize(differences);
  if (differences.empty()) return out;
  const auto count = static_cast<double>(out.items);
  out.first /= count;
  out.second /= count;
  out.difference = out.second - out.first;
  const auto interval = algorithms::normal_interval(differences);
  out.low = interval.low;
  out.high = interval.high;
  if (whole) {
    out.only_first = b;
    out.only_second = c;
    out.p_value = mcnemar_p(b, c);
  }
  return out;
}

}  // namespace

double mcnemar_p(std::int64_t b, std::int64_t c) {
  const std::int64_t n = b + c, least = std::min(b, c);
  double sum = 0;
  for (std::int64_t k = 0; k <= least; ++k)
    sum += std::exp(
        std::lgamma(static_cast<double>(n + 1)) - std::lgamma(static_cast<double>(k + 1)) -
        std::lgamma(static_cast<double>(n - k + 1)) - static_cast<double>(n) * std::log(2.0));
  return std::min(1.0, 2 * sum);
}

Result<std::vector<PairedDifference>> compare_results(const std::string& first,
                                                      const std::string& second) {
  const auto one = sample_files(first);
  RETURN_IF_ERROR(one);
  const auto other = sample_files(second);
  RETURN_IF_ERROR(other);
  std::vector<PairedDifference> out;
  for (const auto& [task, path] : *one) {
    if (!other->contains(task)) continue;
    const auto a = read_samples(path);
    RETURN_IF_ERROR(a);
    const auto b = read_samples(other->at(task));
    RETURN_IF_ERROR(b);
    for (const auto& [key, samples] : *a) {
      const auto found = b->find(key);
      if (found == b->end()) continue;
      auto pair = paired(task, key, samples, found->second);
      RETURN_IF_ERROR(pair);
      if (pair->items > 0) out.push_back(std::move(*pair));
    }
  }
  if (out.empty())
    return fail(Errc::bad_input, cat(first, " and ", second, " have no item of a task in common"));
  return out;
}

std::string comparison_table(const std::vector<PairedDifference>& all) {
  std::vector<std::vector<std::string>> rows = {{"task", "filter", "metric", "items", "first",
                                                 "second", "difference", "95 %", "only first",
                                                 "only second", "p (McNemar)"}};
  const auto count = [](const std::optional<std::int64_t>& n) {
    return n ? std::to_string(*n) : std::string();
  };
  for (const PairedDifference& each : all)
    rows.push_back({each.task, each.filter, each.metric, std::to_string(each.items),
                    to_text(each.first, 4), to_text(each.second, 4), to_text(each.difference, 4),
                    cat(to_text(each.low, 4), " to ", to_text(each.high, 4)),
                    count(each.only_first), count(each.only_second),
                    each.p_value ? to_text(*each.p_value, 4) : ""});
  return text_table(rows, 3);
}

Json comparison_json(const std::vector<PairedDifference>& all) {
  Json::Array out;
  for (const PairedDifference& each : all) {
    Json one =
        Json::Object{{"task", each.task},   {"filter", each.filter}, {"metric", each.metric},
                     {"items", each.items}, {"first", each.first},   {"second", each.second}};
    one.set("difference", each.difference).set("interval_95", Json::Array{each.low, each.high});
    if (each.p_value) {
      one.set("only_first", *each.only_first).set("only_second", *each.only_second);
      one.set("mcnemar_p", *each.p_value);
    }
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace troupe::launch::evaluation
