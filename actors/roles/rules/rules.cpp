#include "actors/roles/rules/rules.h"

#include <algorithm>
#include <cmath>

#include "engine/base/json/fields.h"
#include "engine/base/text/text.h"

namespace troupe::actors::rules {
namespace {

// Maximum size of a completion that rules score.
constexpr std::size_t max_completion_bytes = 16u << 20;
// Threads of a verifier.
constexpr std::size_t max_concurrency = 64;

struct PartConfig {
  std::string name, label;
  double weight = 1;
  Json options;
  static void each_field(auto& self, auto&& field) {
    field("name", self.name);
    field("label", self.label);
    field("weight", self.weight);
    field("options", self.options);
  }
};

}  // namespace

Result<Rules> Rules::from_json(const Json& list, const std::string& where) {
  if (!list.is_array() || list.array().empty())
    return fail(Errc::usage,
                cat(where, R"(: expected a list of rules like [{"name": "exact_match"}], found )",
                    list.type_name()));
  Rules out;
  for (std::size_t i = 0; i < list.array().size(); ++i) {
    const std::string place = cat(where, "[", i, "]");
    auto config = fields_from_json<PartConfig>(list.array()[i], place);
    RETURN_IF_ERROR(config);
    auto rule = make_rule(config->name, config->options, place);
    RETURN_IF_ERROR(rule);
    if (!std::isfinite(config->weight))
      return fail(Errc::usage, cat(place, ".weight: expected a finite number"));
    const std::string label = config->label.empty() ? config->name : config->label;
    const auto known = out.labels();
    if (std::find(known.begin(), known.end(), label) != known.end())
      return fail(Errc::usage, cat(place, ": a second rule is called ", quote(label),
                                   "; give it another \"label\""));
    out.parts_.push_back({label, config->weight, std::move(*rule)});
  }
  return out;
}

Result<> Rules::check_files() const {
  for (const auto& part : parts_) {
    if (!part.rule.check_files) continue;
    RETURN_IF_ERROR(part.rule.check_files());
  }
  return {};
}

Result<> Rules::start() const {
  for (const auto& part : parts_) {
    if (!part.rule.start) continue;
    RETURN_IF_ERROR(part.rule.start());
  }
  return {};
}

namespace {

/// The weighted sum of the rules that apply to a completion.
struct Sum {
  double value = 0;
  bool any = false;
};

void add(protocol::RewardResult& result, Sum& sum, const std::string& label, double weight,
         const RuleResult& scored) {
  if (!scored) {
    result.failure += cat(result.failure.empty() ? "" : "; ", label, ": ", scored.error().what);
    result.failure_kinds.push_back(scored.error().kind);
    return;
  }
  if (scored->applies) result.parts.emplace_back(label, scored->reward);
  for (const auto& [name, value] : scored->parts)
    result.parts.emplace_back(cat(label, "/", name), value);
  if (!scored->applies) return;
  sum.value += weight * scored->reward;
  sum.any = true;
}

}  // namespace

std::size_t Rules::concurrency() const {
  std::size_t most = 1;
  for (const auto& part : parts_) most = std::max(most, part.rule.concurrency);
  return std::min(most, max_concurrency);
}

RuleInputs Rules::inputs() const {
  RuleInputs out;
  for (const auto& part : parts_) {
    out.rows |= part.rule.inputs.rows;
    out.whole_groups |= part.rule.inputs.whole_groups;
  }
  return out;
}

std::vector<protocol::RewardResult> Rules::score(
    std::span<const protocol::RewardRequest> requests) const {
  std::vector<protocol::RewardResult> results(requests.size());
  std::vector<protocol::RewardRequest> short_enough;
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::size_t bytes = requests[i].completion.size();
    if (bytes <= max_completion_bytes) {
      short_enough.push_back(requests[i]);
      indices.push_back(i);
    } else
      results[i].failure = cat("the completion has ", bytes, " bytes, more than the ",
                               max_completion_bytes, " that rules read");
  }
  std::vector<Sum> sums(indices.size());
  for (const auto& part : parts_) {
    const auto scores = part.rule.score(short_enough);
    for (std::size_t i = 0; i < indices.size(); ++i)
      add(results[indices[i]], sums[i], part.label, part.weight, scores[i]);
  }
  for (std::size_t i = 0; i < indices.size(); ++i) {
    auto& result = results[indices[i]];
    if (!result.failure.empty()) continue;
    if (sums[i].any) {
      result.reward = sums[i].value;
      continue;
    }
    result.not_applicable = true;
    result.failure = "no rule gives this completion a reward (each answered null)";
  }
  return results;
}

Result<> Rules::check_answer(const Json& answer) const {
  for (const auto& part : parts_) {
    if (!part.rule.check_answer) continue;
    const auto ok = part.rule.check_answer(answer);
    if (ok) continue;
    if (!answer.is_null())
      return fail(ok.error().code, cat("the reward rule ", part.label, ": ", ok.error().what));
    return fail(ok.error().code,
                cat("the reward rule ", part.label,
                    " needs the row's answer: expected a text or a number under answer, "
                    "ground_truth, solution or reward_model.ground_truth, found nothing; "
                    "data.columns.answer=NAME reads another column"));
  }
  return {};
}

std::vector<std::string> Rules::labels() const {
  std::vector<std::string> out;
  for (const auto& part : parts_) out.push_back(part.label);
  return out;
}

}  // namespace troupe::actors::rules
