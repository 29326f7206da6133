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
//
// NAMES: separated by commas; "vllm_*" means all names that begin so. KEYS: the first one that the
// run's method reads is meant; "rloo:grpo.reward_beta" is for that algorithm only. VALUES: "a=b"
// pairs (an empty b is our default, ! has no equivalent, !! is refused, "algorithm:cispo" sets
// others), `*` where all other values are ours, too, `@name` for a conversion of
// launch/tools/migration/import; empty: every value is ours, too. DEFAULT: the tool's own where it
// may differ from ours ("sft,dpo:1024"). ABSENT: the keys, or sections, that an equivalent would
// add; a test fails once one exists.
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
