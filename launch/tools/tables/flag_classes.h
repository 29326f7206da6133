// What the flags of the table are here: their classes, reasons and values.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "launch/tools/tables/tool_table.h"

namespace troupe::launch::tools::tables {

enum class FlagClass { acts, already_so, no_effect, refused };
constexpr std::array<std::string_view, 4> names_of(FlagClass) {
  return {"acts", "already so", "no effect", "refused"};
}

/// Dashes and underscores are the same, as for argparse's destinations, and so is a beginning that
/// only one flag has; nullptr: unknown.
const MegatronFlag* find_flag(std::string_view name);
FlagClass class_of(const MegatronFlag& flag);
/// The key that it sets or is compared with ("train.steps", "config.json num_hidden_layers"), the
/// option that it is ("preprocess --input"), or "".
std::string key_of(const MegatronFlag& flag);
/// Why it is refused or changes nothing, or what it does.
std::string remark_of(const MegatronFlag& flag);
/// The program whose flag it is alone: "inference", "preprocess", "convert", or "" for training.
std::string_view program_of(const MegatronFlag& flag);
/// "--optimizer sgd: expected adam; AdamW is ..." for a value that a flag does not have, or "".
std::string problem_of(const MegatronFlag& flag, const std::vector<std::string>& values);

}  // namespace troupe::launch::tools::tables
