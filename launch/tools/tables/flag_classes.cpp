#include "launch/tools/tables/flag_classes.h"

#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"

namespace troupe::launch::tools::tables {
namespace {

/// "adam" or "PretrainedFromHF or HuggingFaceTokenizer".
std::string alternatives(std::string_view values) {
  const auto words = pieces(values, ' ');
  return join(std::vector<std::string>(words.begin(), words.end()), " or ");
}

/// The row of the importer for a pretraining run, otherwise for any run that has a key.
const ToolKey* row_of(const MegatronFlag& flag) {
  if (flag.rule != FlagRule::import) return nullptr;
  const auto rows = find_rows(Tool::mindspeed, normal_name(flag.name));
  for (const ToolKey* row : rows)
    if (row->equivalent == Equivalent::setting) return row;
  return rows.empty() ? nullptr : rows[0];
}

bool same_value(std::string_view allowed, const std::string& given) {
  if (allowed == given) return true;
  const auto a = parse_number<double>(allowed), b = parse_number<double>(given);
  return a && b && *a == *b;
}

bool takes(std::string_view count, std::size_t values) {
  if (count == "*") return true;
  if (count == "+") return values > 0;
  return values == static_cast<std::size_t>(count[0] - '0');
}

}  // namespace

const MegatronFlag* find_flag(std::string_view name) {
  const std::string normal = normal_name(name);
  const MegatronFlag* longer = nullptr;
  int found = 0;
  for (const MegatronFlag& flag : megatron_flags()) {
    const std::string each = normal_name(flag.name);
    if (each == normal) return &flag;
    if (!each.starts_with(normal)) continue;
    longer = &flag;
    ++found;
  }
  return found == 1 ? longer : nullptr;
}

FlagClass class_of(const MegatronFlag& flag) {
  switch (flag.rule) {
    case FlagRule::so:
    case FlagRule::only:
      return FlagClass::already_so;
    case FlagRule::none:
      return FlagClass::no_effect;
    case FlagRule::no:
      return FlagClass::refused;
    case FlagRule::import:
      break;
    default:
      return FlagClass::acts;
  }
  const ToolKey* row = row_of(flag);
  if (!row || row->equivalent == Equivalent::none || row->equivalent == Equivalent::by_hand)
    return FlagClass::refused;
  return row->equivalent == Equivalent::setting ? FlagClass::acts : FlagClass::already_so;
}

std::string key_of(const MegatronFlag& flag) {
  if (flag.rule == FlagRule::config || flag.rule == FlagRule::field)
    return cat("config.json ", flag.argument);
  if (flag.rule == FlagRule::key || flag.rule == FlagRule::program)
    return std::string(flag.argument);
  const ToolKey* row = row_of(flag);
  return !row || row->targets.empty() ? "" : std::string(row->targets[0].key);
}

std::string remark_of(const MegatronFlag& flag) {
  const ToolKey* row = row_of(flag);
  if (flag.rule == FlagRule::only)
    return cat("expected ", alternatives(flag.argument), ": ", flag.remark);
  return std::string(row && flag.remark.empty() ? row->remark : flag.remark);
}

std::string_view program_of(const MegatronFlag& flag) {
  constexpr std::array<std::array<std::string_view, 2>, 5> programs{
      {{"Inference", "inference"},
       {"Preprocessing", "preprocess"},
       {"Conversion", "convert"},
       {"Evaluation", "evaluation"},
       {"Other programs", "full sharding"}}};
  for (const auto& [section, program] : programs)
    if (flag.section == section) return program;
  return "";
}

std::string problem_of(const MegatronFlag& flag, const std::vector<std::string>& values) {
  const std::string written = cat("--", flag.name);
  if (class_of(flag) == FlagClass::refused) return cat(written, ": ", remark_of(flag));
  if (!takes(flag.count, values.size()))
    return cat(written, ": expected ", flag.count == "+" ? "one or more" : flag.count,
               " values, found ", values.size());
  if (flag.rule != FlagRule::only) return "";
  for (const auto each : pieces(flag.argument, ' '))
    if (same_value(each, values[0])) return "";
  return cat(written, ' ', values[0], ": expected ", alternatives(flag.argument), "; ",
             flag.remark);
}

}  // namespace troupe::launch::tools::tables
