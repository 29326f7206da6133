#include "launch/rewards.h"

namespace troupe::launch {

Json reward_rules(const RunConfig& config) {
  Json::Array list;
  for (const RewardRule& rule : config.reward) {
    Json entry = Json().set("name", rule.rule).set("weight", rule.weight);
    if (!rule.label.empty()) entry.set("label", rule.label);
    if (!rule.options.is_null()) entry.set("options", rule.options);
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace troupe::launch
