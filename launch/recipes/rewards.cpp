#include "launch/recipes/rewards.h"

#include <algorithm>
#include <cmath>

#include "engine/base/json/fields.h"
#include "engine/base/text/text.h"

namespace troupe::launch::recipes {
namespace {

constexpr std::string_view outcome = model_rules[0], process = model_rules[1];

Result<> check_item(const OutcomeItem& item, const std::string& where) {
  if (!(item.std > 0) || !std::isfinite(item.std) || !std::isfinite(item.mean))
    return fail(
        Errc::usage,
        cat(where, ".std: expected a number above 0 (and a finite mean), found ", item.std));
  if (!(item.clip >= 0))
    return fail(
        Errc::usage,
        cat(where, ".clip: expected a number of at least 0 (0: no clip), found ", item.clip));
  if (item.normalize != RewardNormalization::given && (item.mean != 0 || item.std != 1))
    return fail(Errc::usage, cat(where, ": mean and std are used with normalize: given only"));
  return {};
}

Result<> check_item(const ProcessItem& item, const std::string& where) {
  if (item.separator.empty())
    return fail(Errc::usage,
                cat(where, ".separator: expected the text that ends a step, found nothing"));
  if (item.right < 0)
    return fail(Errc::usage, cat(where, ".right: expected a label from 0, found ", item.right));
  if (item.kind == algorithms::PrmKind::placeholder && item.reward_tokens.size() < 2)
    return fail(Errc::usage,
                cat(where, ".reward_tokens: expected two or more, a right step's first, found ",
                    item.reward_tokens.size()));
  return {};
}

template <class Item>
Result<RewardItem> item_of(const config::RewardRule& rule, const std::string& where) {
  const auto options = fields_from_json<Item>(rule.options, where);
  RETURN_IF_ERROR(options);
  if (options->path.empty())
    return fail(Errc::usage,
                cat(where, ": expected path, the directory of the reward model, found none"));
  RETURN_IF_ERROR(check_item(*options, where));
  if (!std::isfinite(rule.weight))
    return fail(Errc::usage, cat(where, ".weight: expected a finite number"));
  return RewardItem{rule.label.empty() ? rule.rule : rule.label, rule.weight, *options};
}

}  // namespace

bool is_model(const config::RewardRule& rule) {
  return rule.rule == outcome || rule.rule == process;
}

Result<std::vector<RewardItem>> reward_items(const config::RunConfig& config) {
  std::vector<RewardItem> out;
  for (std::size_t i = 0; i < config.reward.size(); ++i) {
    const config::RewardRule& rule = config.reward[i];
    if (!is_model(rule)) continue;
    const std::string where = cat("reward[", i, "]");
    auto item = rule.rule == outcome ? item_of<OutcomeItem>(rule, where)
                                     : item_of<ProcessItem>(rule, where);
    RETURN_IF_ERROR(item);
    const auto same = [&](const config::RewardRule& other) {
      return &other != &rule && (other.label.empty() ? other.rule : other.label) == item->label;
    };
    if (std::ranges::any_of(config.reward, same))
      return fail(Errc::usage, cat(where, ": a second rule is called ", quote(item->label),
                                   "; give it another \"label\""));
    out.push_back(std::move(*item));
  }
  return out;
}

RoleUse verifier_use(const config::RunConfig& config) {
  const bool made_here = config.rollout.source == config::SampleSource::engine;
  return {made_here && (config.reward.empty() || !std::ranges::all_of(config.reward, is_model)),
          "reward has no rule that works without a model"};
}

RoleUse reward_use(const config::RunConfig& config) {
  return {std::ranges::any_of(config.reward, is_model),
          "reward has no item {rule: model} or {rule: process}"};
}

}  // namespace troupe::launch::recipes
