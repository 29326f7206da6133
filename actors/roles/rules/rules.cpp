#include "actors/roles/rules/rules.h"

#include <algorithm>
#include <cmath>

#include "engine/base/fields.h"
#include "engine/base/text.h"

namespace troupe::actors::rules {
namespace {

// Beyond this no rule looks at a completion.
constexpr std::size_t longest_completion = 16u << 20;

struct PartConfig {
  std::string name, label;
  double weight = 1;
  Json options;
  static void each_field(auto& self, auto&& field) {
    field("name", self.name), field("label", self.label), field("weight", self.weight), field("options", self.options);
  }
};

}  // namespace

Result<Rules> Rules::from_json(const Json& list, const std::string& where) {
  if (!list.is_array() || list.array().empty())
    return fail(Errc::usage, cat(where, R"(: expected a list of rules like [{"name": "exact_match"}], found )", list.type_name()));
  Rules out;
  for (std::size_t i = 0; i < list.array().size(); ++i) {
    const std::string place = cat(where, "[", i, "]");
    auto config = fields_from_json<PartConfig>(list.array()[i], place);
    if (!config) return fail(config.error());
    auto rule = make_rule(config->name, config->options, cat(place, config->options.is_null() ? "" : ".options"));
    if (!rule) return fail(rule.error());
    if (!std::isfinite(config->weight)) return fail(Errc::usage, cat(place, ".weight: expected a finite number"));
    const std::string label = config->label.empty() ? config->name : config->label;
    const auto known = out.labels();
    if (std::find(known.begin(), known.end(), label) != known.end())
      return fail(Errc::usage, cat(place, ": a second rule is called ", quote(label), "; give it another \"label\""));
    out.parts_.push_back({label, config->weight, std::move(*rule)});
  }
  return out;
}

protocol::Verdict Rules::judge(const protocol::Submission& submission) const {
  protocol::Verdict verdict;
  if (submission.completion.size() > longest_completion) {
    verdict.failure =
        cat("the completion has ", submission.completion.size(), " bytes, more than the ", longest_completion, " that rules read");
    return verdict;
  }
  double sum = 0;
  for (const auto& part : parts_) {
    const auto score = part.rule(submission);
    if (score)
      verdict.parts.emplace_back(part.label, *score), sum += part.weight * *score;
    else
      verdict.failure += cat(verdict.failure.empty() ? "" : "; ", part.label, ": ", score.error().what);
  }
  if (verdict.failure.empty()) verdict.reward = sum;
  return verdict;
}

std::vector<std::string> Rules::labels() const {
  std::vector<std::string> out;
  for (const auto& part : parts_) out.push_back(part.label);
  return out;
}

}  // namespace troupe::actors::rules
