// The one table of configuration keys; launch/recipes has each algorithm's part of it. It drives
// parsing, --set, nearest-key errors, explain, the resolved file and docs/configuration.md.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "launch/config/run_config.h"

namespace troupe::launch {

/// Where a value lives, and so of what type it is.
using Slot = std::variant<std::string*, std::int64_t*, double*, bool*, std::vector<std::string>*,
                          std::vector<double>*, std::map<std::string, std::string>*,
                          std::vector<RewardRule>*, std::vector<MixSource>*>;

/// Allowed numbers (of every item, where a field is a list).
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool above_low = false;   ///< low itself is not allowed
  bool below_high = false;  ///< high itself is not allowed
};

constexpr Range any{}, at_least_0{0, std::numeric_limits<double>::infinity()},
    at_least_1{1, std::numeric_limits<double>::infinity()},
    above_0{0, std::numeric_limits<double>::infinity(), true}, fraction{0, 1},
    below_1{0, 1, false, true};

struct Field {
  std::string_view key;  ///< "train.learning_rate"
  Slot (*slot)(RunConfig&);
  std::string_view doc;      ///< one line
  std::string_view choices;  ///< "constant|linear": the allowed words; empty: any
  Range range;
  std::size_t length = 0;  ///< items that a list must have; 0: any number
};

/// All keys, section by section, in the order in which they are printed: those of every run, each
/// recipe's own, then those that several recipes share.
std::span<const Field> fields();
/// The field called `key`, or nullptr.
const Field* find_field(std::string_view key);
/// The known key that `key` is most likely to have meant ("learning_rate" means
/// "train.learning_rate"), or "".
std::string nearest_key(std::string_view key);

/// Words that other programs use for one of ours ("cosine_with_min_lr" is "cosine"); others come
/// back as they are.
std::string canonical_choice(const Field& field, std::string_view word);

/// The value as it stands in a YAML file.
std::string value_text(const Field& field, const RunConfig& config);
/// "whole number", "list of words"...: for the reference page and for messages.
std::string_view type_name(const Field& field);
/// The range or the choices, in words ("above 0, at most 1"); empty when anything goes.
std::string allowed_text(const Field& field);
/// "train" of "train.steps", "" of "reward".
std::string_view section_of(std::string_view key);
/// The same, but a key without a section is a part of its own: the words of Recipe::sections.
std::string_view part_of(const Field& field);
/// True when runs of `algorithm` read the field.
bool applies(const Field& field, std::string_view algorithm);

}  // namespace troupe::launch
