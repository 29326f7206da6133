#include "launch/commands/import/reward_rules.h"

#include <algorithm>
#include <array>

#include "engine/base/text.h"
#include "launch/config/schema.h"
#include "launch/recipes/recipes.h"

namespace troupe::launch {
namespace {

struct KnownFunction {
  std::string_view theirs, rule;
};
// TRL's reward functions and MindSpeed-RL's verifiers.
constexpr std::array known_functions{
    KnownFunction{"accuracy_reward", "{rule: boxed}"},
    KnownFunction{"accuracy", "{rule: boxed}"},
    KnownFunction{"think_format_reward",
                  R"({rule: regex, pattern: "(?m)\\A<think>(?:.|\\n)*?</think>", full: false})"},
    KnownFunction{"base_acc", "{rule: boxed}"},
    KnownFunction{"acc", "{rule: boxed}"},
    KnownFunction{"math_17k_acc", "{rule: boxed}"},
    KnownFunction{"acc_for_ppo", "{rule: boxed}"},
    KnownFunction{"format", "{rule: format}"},
    KnownFunction{"strict_format", "{rule: format}"}};

bool needs_reward(const ImportSettings& settings) {
  const Field* field = find_field("reward");
  return reads(settings.converted.algorithm, *field);
}

/// A rule for a function or a program, or "" for one that is not known.
std::string rule_for(const std::string& name) {
  for (const KnownFunction& known : known_functions)
    if (known.theirs == name) return std::string(known.rule);
  if (name.ends_with(".py")) return cat("{rule: command, run: [python3, ", yaml_text(name), "]}");
  return "";
}

void add_rule(ImportSettings& settings, const std::string& rule) {
  auto& value = settings.converted.values["reward"];
  const std::string before =
      value.yaml.size() > 2 ? value.yaml.substr(1, value.yaml.size() - 2) + ", " : "";
  value = {cat('[', before, rule, ']'), settings.current};
}

void functions(ImportSettings& settings, const YamlNode& value) {
  std::vector<std::string> rules;
  for (const std::string& name : items_of(value)) {
    const std::string rule = rule_for(name);
    if (rule.empty()) {
      settings.line(Outcome::no_equivalent,
                    cat(name, ": write it as a command rule of reward (docs/rewards.md)"));
      continue;
    }
    add_rule(settings, rule);
    rules.push_back(rule);
    if (name.ends_with(".py"))
      settings.note(cat("reward: ", name,
                        " must read JSON lines and answer them "
                        "(docs/rewards.md); a function alone is not a program"));
  }
  if (!rules.empty()) settings.line(Outcome::became, cat("reward: ", join(rules, ", ")));
}

/// The weights of the functions that became rules: those of the others have no place here.
std::vector<std::string> weights_of_rules(const ImportSettings& settings, const YamlNode& value) {
  std::vector<std::string> numbers = items_of(value), out;
  for (const ForeignSetting& each : settings.run.settings)
    for (const ToolKey* row : rows_of(settings.tool, each.key)) {
      const auto names =
          row->converter == "rewards" ? items_of(each.value) : std::vector<std::string>();
      for (std::size_t i = 0; i < std::min(names.size(), numbers.size()); ++i)
        if (!rule_for(names[i]).empty()) out.push_back(numbers[i]);
    }
  return out;
}

void weights(ImportSettings& settings, const YamlNode& value) {
  const auto numbers = weights_of_rules(settings, value);
  auto& reward = settings.converted.values["reward"];
  std::size_t at = 0;
  for (const std::string& number : numbers) {
    at = reward.yaml.find('}', at);
    if (at == std::string::npos) break;
    const std::string text = cat(", weight: ", number);
    reward.yaml.insert(at, text);
    at += text.size() + 1;
  }
  if (reward.yaml.empty()) {
    settings.converted.values.erase("reward");
    return settings.line(Outcome::no_equivalent, "no rule was converted that could have a weight");
  }
  settings.line(Outcome::became, cat("reward: weights ", join(numbers, ", ")));
}

/// A reward model that is on; verl's configurations name one that is off.
void model_rule(ImportSettings& settings, const YamlNode& value) {
  if (settings.theirs("reward_model.enable", "true") == "false")
    return settings.line(Outcome::already_default,
                         "reward_model.enable is off, so it has no effect");
  const bool normalized = settings.theirs("normalize_reward", "false") == "true";
  const std::string rule = cat("{rule: model, path: ", yaml_text(text_of(value)),
                               normalized ? ", normalize: saved}" : "}");
  add_rule(settings, rule);
  settings.line(Outcome::became, cat("reward: ", rule));
}

}  // namespace

bool convert_reward(ImportSettings& settings, std::string_view converter, const YamlNode& value) {
  if (converter == "rewards") {
    functions(settings, value);
  } else if (converter == "reward_weights") {
    weights(settings, value);
  } else if (converter == "reward_model") {
    model_rule(settings, value);
  } else if (converter == "normalize_reward") {
    settings.line(settings.given("reward_pretrain") ? Outcome::became : Outcome::no_equivalent,
                  "normalize: saved, in the rule model of reward");
  } else {
    return false;
  }
  return true;
}

void finish_reward(ImportSettings& settings) {
  if (settings.has("reward") || !needs_reward(settings)) return;
  bool gsm8k = false;
  for (const ForeignSetting& each : settings.run.settings)
    gsm8k = gsm8k || text_of(each.value).find("gsm8k") != std::string::npos;
  const std::string rule = gsm8k ? "gsm8k" : "boxed";
  settings.current = "a guess";
  settings.converted.values["reward"] = {cat("[{rule: ", rule, "}]"), settings.current};
  settings.note(cat("reward: ", rule,
                    " is a guess, because the settings name no reward that is a "
                    "rule here; choose the rules (docs/rewards.md)"));
}

}  // namespace troupe::launch
