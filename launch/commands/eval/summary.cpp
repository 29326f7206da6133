#include "launch/commands/eval/summary.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <span>

#include "engine/base/text/text.h"

namespace troupe::launch::commands {
namespace {

// What the summary needs of one item.
struct ItemResult {
  std::vector<std::optional<double>> rewards;
  std::map<std::string, std::vector<double>> parts;
  std::vector<double> tokens, truncated;
};

Result<const Json*> array_of(const Json& line, std::string_view key, std::size_t size) {
  const Json* found = line.find(key);
  if (found && found->is_array() && (size == 0 || found->array().size() == size)) return found;
  return fail(Errc::corrupt, cat("a line of the evaluation has no list ", quote(key),
                                 size > 0 ? cat(" of ", size) : std::string()));
}

Result<ItemResult> item_of(const Json& line) {
  const auto rewards = array_of(line, "rewards", 0);
  RETURN_IF_ERROR(rewards);
  const std::size_t samples = (*rewards)->array().size();
  const auto tokens = array_of(line, "tokens", samples);
  RETURN_IF_ERROR(tokens);
  const auto reasons = array_of(line, "finish_reasons", samples);
  RETURN_IF_ERROR(reasons);
  ItemResult item;
  for (std::size_t k = 0; k < samples; ++k) {
    const Json& reward = (*rewards)->array()[k];
    const Json& count = (*tokens)->array()[k];
    item.rewards.push_back(reward.is_number() ? std::optional(reward.number()) : std::nullopt);
    if (count.is_number()) item.tokens.push_back(count.number());
    item.truncated.push_back((*reasons)->array()[k] == Json("length") ? 1 : 0);
  }
  const Json* parts = line.find("parts");
  if (!parts || !parts->is_object()) return item;
  for (const auto& [name, values] : parts->object())
    if (values.is_array())
      for (const Json& value : values.array())
        if (value.is_number()) item.parts[name].push_back(value.number());
  return item;
}

double mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// The mean over items, each the mean of its values; nothing without a value. Equal means show no
// variance, from which no interval follows.
void add_mean(EvalSummary& out, std::string name, const std::vector<std::vector<double>>& items) {
  std::vector<double> means;
  for (const auto& values : items)
    if (!values.empty()) means.push_back(mean(values));
  if (means.empty()) return;
  Estimate estimate{std::move(name), mean(means), std::nullopt, ""};
  if (std::ranges::adjacent_find(means, std::not_equal_to<>()) != means.end()) {
    estimate.interval = algorithms::normal_interval(means);
    estimate.method = "normal";
  }
  out.estimates.push_back(std::move(estimate));
}

void add_passes(EvalSummary& out, const std::vector<ItemResult>& items, double pass_reward) {
  std::vector<std::int64_t> passed;
  for (const ItemResult& item : items)
    passed.push_back(std::ranges::count_if(
        item.rewards, [&](const auto& reward) { return reward && *reward >= pass_reward; }));
  if (out.samples == 1) {
    std::int64_t right = 0;
    for (const std::int64_t each : passed) right += each;
    out.estimates.push_back({"accuracy",
                             static_cast<double>(right) / static_cast<double>(out.items),
                             algorithms::wilson_interval(right, out.items), "Wilson"});
    return;
  }
  for (const std::int64_t k : algorithms::pass_ks(out.samples)) {
    std::vector<double> values;
    for (const std::int64_t each : passed)
      values.push_back(algorithms::pass_at_k(out.samples, each, k));
    const double draws = static_cast<double>(out.samples) / static_cast<double>(k);
    out.estimates.push_back({cat("pass@", k), mean(values),
                             algorithms::clustered_interval(values, draws), "clustered Wilson"});
  }
}

void add_rewards(EvalSummary& out, const std::vector<ItemResult>& items) {
  std::vector<std::vector<double>> rewards;
  std::map<std::string, std::vector<std::vector<double>>> parts;
  for (const ItemResult& item : items) {
    auto& values = rewards.emplace_back();
    for (const auto& reward : item.rewards)
      if (reward) values.push_back(*reward);
    for (const auto& [name, part] : item.parts) parts[name].push_back(part);
  }
  add_mean(out, "reward", rewards);
  if (parts.size() > 1)
    for (const auto& [name, values] : parts) add_mean(out, cat("rewards/", name, "/mean"), values);
}

void add_lengths(EvalSummary& out, const std::vector<ItemResult>& items) {
  std::vector<double> tokens, truncated;
  for (const ItemResult& item : items) {
    tokens.insert(tokens.end(), item.tokens.begin(), item.tokens.end());
    truncated.insert(truncated.end(), item.truncated.begin(), item.truncated.end());
  }
  if (!tokens.empty())
    out.estimates.push_back({"completions/mean_length", mean(tokens), std::nullopt, ""});
  out.estimates.push_back({"completions/clipped_ratio", mean(truncated), std::nullopt, ""});
}

void count_failures(EvalSummary& out, const Json& line, const ItemResult& item) {
  for (const auto& reward : item.rewards) out.failed += !reward;
  const Json* failures = line.find("failures");
  if (!out.failure.empty() || !failures || !failures->is_array()) return;
  for (const Json& failure : failures->array())
    if (failure.is_string() && out.failure.empty()) out.failure = failure.string();
}

std::string digits(double value, int count) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.*g", count, value);
  return text;
}

}  // namespace

Result<EvalSummary> summarize(const std::vector<Json>& lines, double pass_reward) {
  EvalSummary out;
  out.items = std::ssize(lines);
  std::vector<ItemResult> items;
  for (const Json& line : lines) {
    auto item = item_of(line);
    RETURN_IF_ERROR(item);
    if (item->rewards.empty() ||
        (!items.empty() && item->rewards.size() != items.front().rewards.size()))
      return fail(Errc::corrupt,
                  "the items of the evaluation have different numbers of completions");
    count_failures(out, line, *item);
    items.push_back(std::move(*item));
  }
  out.samples = std::ssize(items.front().rewards);
  add_passes(out, items, pass_reward);
  add_rewards(out, items);
  add_lengths(out, items);
  return out;
}

std::string summary_text(const EvalSummary& summary) {
  std::string out;
  for (const Estimate& each : summary.estimates) {
    out += cat(each.name, " ", digits(each.value, 6));
    if (each.interval)
      out += cat(" (95 % interval ", digits(each.interval->low, 3), " to ",
                 digits(each.interval->high, 3), ", ", each.method, ")");
    out += "\n";
  }
  return out + cat("items ", summary.items, "\n", "completions_per_item ", summary.samples, "\n",
                   "failed_rewards ", summary.failed, "\n");
}

Json summary_json(const EvalSummary& summary) {
  Json out;
  for (const Estimate& each : summary.estimates) {
    if (!each.interval) {
      out.set(each.name, each.value);
      continue;
    }
    Json value;
    value.set("value", each.value).set("low", each.interval->low).set("high", each.interval->high);
    value.set("interval", each.method);
    out.set(each.name, std::move(value));
  }
  return out.set("items", summary.items)
      .set("completions_per_item", summary.samples)
      .set("failed_rewards", summary.failed);
}

}  // namespace troupe::launch::commands
