#include "launch/tools/migration/converters.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "launch/config/schema.h"
#include "launch/recipes/recipes.h"
#include "launch/tools/migration/words.h"

namespace troupe::launch::tools::migration {
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
  const config::Field* field = config::find_field("reward");
  return recipes::reads(settings.converted.algorithm, *field);
}

/// A function in a file: FILE.py:NAME.
struct FileFunction {
  std::string file, name;
};

/// The function that a setting of the tool names, if it is one in a file.
std::optional<FileFunction> function_of(const ImportSettings& settings, const std::string& text) {
  if (settings.tool == tables::Tool::openrlhf && text.ends_with(".py"))
    return FileFunction{text, "reward_func"};
  if (settings.tool == tables::Tool::verl && text.ends_with(".py"))
    return FileFunction{text, settings.theirs("custom_reward_function.name", "compute_score")};
  const auto dot = text.rfind('.');
  if (settings.tool != tables::Tool::trl || dot == text.npos || text.find('/') != text.npos)
    return std::nullopt;
  // A dotted import path, relative to the folder in which TRL is started.
  FileFunction out{text.substr(0, dot), text.substr(dot + 1)};
  std::ranges::replace(out.file, '.', '/');
  out.file += ".py";
  return out;
}

/// A number or a truth value as it is, a text in quotes where it needs them.
std::string scalar_yaml(const config::YamlNode& value) {
  const std::string text = text_of(value);
  const bool plain =
      parse_number<double>(text) || text == "true" || text == "false" || text == "null";
  return plain ? text : config::yaml_text(text);
}

/// verl's custom_reward_function.reward_kwargs, as ", arguments: {...}", or "".
std::string arguments_of(const ImportSettings& settings) {
  constexpr std::string_view section = "custom_reward_function.reward_kwargs.";
  std::vector<std::string> members;
  if (settings.tool == tables::Tool::verl)
    for (const ForeignSetting& each : settings.run.settings) {
      const std::string name = tables::normal_name(each.key);
      if (const auto at = name.find(section); at != name.npos)
        members.push_back(cat(config::yaml_text(name.substr(at + section.size())), ": ",
                              each.value.kind == config::YamlNode::Kind::scalar
                                  ? scalar_yaml(each.value)
                                  : yaml_of(each.value)));
    }
  return members.empty() ? "" : cat(", arguments: {", join(members, ", "), '}');
}

/// A rule for a function or a program, or "" for one that is not known.
std::string rule_for(const ImportSettings& settings, const std::string& name) {
  for (const KnownFunction& known : known_functions)
    if (known.theirs == name) return std::string(known.rule);
  const auto function = function_of(settings, name);
  if (!function) return "";
  return cat(
      "{rule: python, function: ", config::yaml_text(cat(function->file, ':', function->name)),
      ", signature: ", name_of(settings.tool), arguments_of(settings), '}');
}

/// What the user has to see to before a function can be called.
void note_function(ImportSettings& settings, const std::string& text) {
  const auto function = function_of(settings, text);
  std::error_code ignored;
  if (!function || std::filesystem::is_regular_file(function->file, ignored)) return;
  const std::string found = file_near(function->file, settings.run.folder);
  settings.note(cat("reward: ", function->file, " is no file here",
                    found.empty() ? "" : cat(" (", found, " is)"),
                    "; write the path of the function's file (docs/rewards.md#python)"));
}

void add_rule(ImportSettings& settings, const std::string& rule) {
  auto& value = settings.converted.values["reward"];
  const std::string before =
      value.yaml.size() > 2 ? value.yaml.substr(1, value.yaml.size() - 2) + ", " : "";
  value = {cat('[', before, rule, ']'), settings.current};
}

void functions(ImportSettings& settings, const config::YamlNode& value) {
  std::vector<std::string> rules;
  for (const std::string& name : items_of(value)) {
    const std::string rule = rule_for(settings, name);
    if (rule.empty()) {
      settings.line(Outcome::no_equivalent,
                    cat(name,
                        ": write its Python function as a rule python of reward, or a "
                        "program as a rule command (docs/rewards.md)"));
      continue;
    }
    add_rule(settings, rule);
    rules.push_back(rule);
    note_function(settings, name);
  }
  if (!rules.empty()) settings.line(Outcome::became, cat("reward: ", join(rules, ", ")));
}

/// The weights of the functions that became rules: those of the others have no place here.
std::vector<std::string> weights_of_rules(const ImportSettings& settings,
                                          const config::YamlNode& value) {
  std::vector<std::string> numbers = items_of(value), out;
  for (const ForeignSetting& each : settings.run.settings)
    for (const tables::ToolKey* row : rows_of(settings.tool, each.key)) {
      const auto names =
          row->converter == "rewards" ? items_of(each.value) : std::vector<std::string>();
      for (std::size_t i = 0; i < std::min(names.size(), numbers.size()); ++i)
        if (!rule_for(settings, names[i]).empty()) out.push_back(numbers[i]);
    }
  return out;
}

void weights(ImportSettings& settings, const config::YamlNode& value) {
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
void model_rule(ImportSettings& settings, const config::YamlNode& value) {
  if (settings.theirs("reward_model.enable", "true") == "false")
    return settings.line(Outcome::already_default,
                         "reward_model.enable is off, so it has no effect");
  const bool normalized = settings.theirs("normalize_reward", "false") == "true";
  const std::string rule = cat("{rule: model, path: ", config::yaml_text(text_of(value)),
                               normalized ? ", normalize: saved}" : "}");
  add_rule(settings, rule);
  settings.line(Outcome::became, cat("reward: ", rule));
}

}  // namespace

bool convert_reward(ImportSettings& settings, std::string_view converter,
                    const config::YamlNode& value) {
  if (converter == "rewards") {
    functions(settings, value);
  } else if (converter == "reward_weights") {
    weights(settings, value);
  } else if (converter == "reward_model") {
    model_rule(settings, value);
  } else if (converter == "reward_part") {
    const std::string path = settings.theirs("custom_reward_function.path", "null");
    const bool used = path != "null" && !path.empty();
    settings.line(used ? Outcome::became : Outcome::already_default,
                  used ? "part of the rule python of reward" : "no function is named");
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

}  // namespace troupe::launch::tools::migration
