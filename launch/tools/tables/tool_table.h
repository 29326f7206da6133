// The settings of other training tools and what each is here. The pages docs/coming-from-*.md, the
// answers to unknown keys and `troupe import` use these tables. Each tool's table is text, one row
// a line:
//
//   # Section
//   NAMES | KEYS | VALUES | REMARK | DEFAULT      a setting of ours
//   NAMES | = | WHY                               what troupe does anyway
//   NAMES | ~ KEYS | WHAT TO DO                   written by hand, with these keys of ours
//   NAMES | - ABSENT | WHAT TO DO                 without an equivalent: we have none of these keys
//   NAMES | -! ABSENT | WHAT TO DO                refused above 1: another model would be trained
//   > FLAGS | RULE ARGUMENT | REMARK | DEFAULT    what Megatron's programs do with these flags
//
// NAMES: separated by commas; "vllm_*" means all names that begin so. KEYS: the first one that the
// run's method reads is meant; "rloo:grpo.reward_beta" is for that algorithm only. VALUES: "a=b"
// pairs (an empty b is our default, ! has no equivalent, !! is refused, "algorithm:cispo" sets
// others), `*` where all other values are ours, too, `@name` for a conversion of
// launch/tools/migration/import; empty: every value is ours, too. DEFAULT: the tool's own where it
// may differ from ours ("sft,dpo:1024"). ABSENT: the keys, or sections, that an equivalent would
// add; a test fails once one exists.
//
// The flags of Megatron core 0.8 (core_r0.8.0, megatron/training/arguments.py) and of MindSpeed-LLM
// 2.0.0 to 26.1.0 are names with the number of their values: "num_layers:1", + for one or more, *
// for any number. Those among NAMES do what the row says; RULE of others is the word of a FlagRule.
// A FLAG has its own ARGUMENT where one follows its number ("hidden-size:1 hidden_size"). Flags of
// the last sections are those of one program.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::launch::tools::tables {

enum class Tool { trl, llama_factory, verl, openrlhf, mindspeed };
constexpr std::array<std::string_view, 5> names_of(Tool) {
  return {"trl", "llama-factory", "verl", "openrlhf", "mindspeed"};
}
constexpr std::array<Tool, 5> all_tools{Tool::trl, Tool::llama_factory, Tool::verl, Tool::openrlhf,
                                        Tool::mindspeed};
/// "LLaMA-Factory".
std::string_view title_of(Tool tool);

enum class Equivalent { setting, built_in, by_hand, none };

struct Target {
  std::string_view algorithm;  ///< "" for all
  std::string_view key;
};

struct ToolKey {
  std::string_view section;
  std::vector<std::string_view> names;
  Equivalent equivalent = Equivalent::setting;
  std::vector<Target> targets;
  std::vector<std::pair<std::string_view, std::string_view>> values;
  bool copies = false;                    ///< values that are not listed are ours, too
  std::string_view converter;             ///< without its @
  std::vector<std::string> hand_written;  ///< keys of ours (by_hand)
  std::vector<std::string> absent;        ///< keys that we do not have (none)
  bool refused = false;                   ///< a value above 1 ends the conversion (none)
  std::string_view remark;
  std::string_view tool_default;
};

std::span<const ToolKey> keys_of(Tool tool);

enum class FlagRule {
  import,   ///< converted by the row of that name
  config,   ///< checked against the model of config.json, or defines its field `argument`
  field,    ///< compared with the field `argument` of config.json: "rope_scaling.factor"
  key,      ///< sets the key `argument`
  program,  ///< sets the key `argument` together with other flags
  only,     ///< other values than those of `argument` are refused
  so,       ///< what troupe does anyway
  none,     ///< without effect on results: the reference only computes in another order
  no        ///< refused, for the reason of the remark
};
constexpr std::array<std::string_view, 9> names_of(FlagRule) {
  return {"import", "config", "field", "key", "program", "only", "so", "none", "no"};
}

struct MegatronFlag {
  std::string_view section;
  std::string name;        ///< without dashes: "num-layers"
  std::string_view count;  ///< of its values: 0, 1, 2, 3, + or *
  FlagRule rule = FlagRule::import;
  std::string_view argument;  ///< of the rule: a field, a key, or the values
  std::string_view remark;
  std::string_view otherwise;  ///< its default, where another value of config.json would count
};
std::span<const MegatronFlag> megatron_flags();

/// "learning_rate" for "--learning-rate" and "+learning_rate".
std::string normal_name(std::string_view name);
/// True if `pattern`, a name or one with a star, means `name`.
bool means(std::string_view pattern, std::string_view name);
/// The rows for a name: those that have it, otherwise those whose pattern means it.
std::vector<const ToolKey*> find_rows(Tool tool, std::string_view name);
/// True if names of a tool begin with "name.", or MindSpeed-RL has a section of that name.
bool is_tool_section(std::string_view name);
/// The rules for values in words: "true: bf16; false: the default"; empty if values are the same.
std::string value_rules(const ToolKey& row);

/// Pieces between separators, trimmed; none of an empty text.
std::vector<std::string_view> pieces(std::string_view text, char separator);

}  // namespace troupe::launch::tools::tables
