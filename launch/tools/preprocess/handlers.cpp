#include "launch/tools/preprocess/handlers.h"

#include <algorithm>

#include "engine/base/text/text.h"

namespace troupe::launch::tools::preprocess {
namespace {

using engine::data::Layout;
using engine::data::Purpose;

// Alpaca's instruction is the prompt, even if a row has a column of one of these names.
const std::vector<std::string_view> not_alpaca = {
    "prompt", "question", "problem", "messages", "conversations", "ground_truth", "solution"};

const Handler handlers[] = {
    {.name = "AlpacaStyleInstructionHandler", .layout = Layout::alpaca, .keys = MapKeys::alpaca},
    {.name = "SharegptStyleInstructionHandler",
     .layout = Layout::messages,
     .keys = MapKeys::sharegpt},
    {.name = "HunyuanInstructionHandler", .keys = MapKeys::alpaca},
    {.name = "AlpacaStylePairwiseHandler",
     .purpose = Purpose::pairs,
     .layout = Layout::pairwise,
     .keys = MapKeys::alpaca},
    {.name = "SharegptStylePairwiseHandler",
     .purpose = Purpose::pairs,
     .layout = Layout::pairwise,
     .keys = MapKeys::sharegpt},
    {.name = "AlpacaStyleProcessRewardHandler",
     .purpose = Purpose::steps,
     .layout = Layout::placeholders},
    {.name = "PPOAlpacaStyleInstructionHandler",
     .purpose = Purpose::prompts,
     .layout = Layout::prompt_answer,
     .keys = MapKeys::alpaca,
     .unused = not_alpaca},
    {.name = "R1AlpacaStyleInstructionHandler",
     .purpose = Purpose::prompts,
     .layout = Layout::prompt_answer,
     .keys = MapKeys::alpaca,
     .unused = not_alpaca,
     .answers = true},
    {.name = "R1SharegptStyleInstructionHandler",
     .purpose = Purpose::prompts,
     .layout = Layout::prompt_answer,
     .keys = MapKeys::sharegpt,
     .unused = {"prompt", "question", "problem", "instruction"},
     .answers = true},
    {.name = "Math17kAlpacaStyleInstructionHandler",
     .purpose = Purpose::prompts,
     .layout = Layout::prompt_answer,
     .answers = true},
};

struct Renamed {
  std::string_view theirs, ours;
};
constexpr Renamed alpaca_names[] = {
    {"prompt", "instruction"}, {"query", "input"},   {"response", "output"},
    {"history", "history"},    {"system", "system"}, {"chosen", "chosen"},
    {"rejected", "rejected"},
};
constexpr Renamed sharegpt_names[] = {
    {"messages", "messages"}, {"system", "system"},     {"tools", "tools"},
    {"chosen", "chosen"},     {"rejected", "rejected"}, {"kto_tag", "kto_tag"},
};

std::span<const Renamed> names_for(MapKeys keys) {
  if (keys == MapKeys::alpaca) return alpaca_names;
  return keys == MapKeys::sharegpt ? std::span<const Renamed>(sharegpt_names)
                                   : std::span<const Renamed>();
}

Result<engine::data::Tags> tags_of(const Json& map) {
  engine::data::Tags out;
  if (!map.is_object())
    return fail(Errc::usage,
                cat("--map-keys: \"tags\": expected an object, found ", map.type_name()));
  for (const auto& [name, value] : map.object()) {
    if (!value.is_string())
      return fail(Errc::usage, cat("--map-keys: the tag ", quote(name), ": expected a name"));
    out[name] = value.string();
  }
  RETURN_IF_ERROR(engine::data::check_tag_names(out));
  return out;
}

// Sets one column; null means "not used", as an empty name does.
Result<> add_column(const Handler& handler, const std::string& name, const Json& value,
                    std::map<std::string, std::string>& to) {
  const auto names = names_for(handler.keys);
  const auto found = std::ranges::find(names, name, &Renamed::theirs);
  if (found == names.end()) {
    std::vector<std::string> known;
    for (const Renamed& each : names) known.emplace_back(each.theirs);
    return fail(Errc::usage, cat("--map-keys: ", quote(name), " is not known to ", handler.name,
                                 "; known: ", known.empty() ? "none" : join(known, ", "),
                                 handler.keys == MapKeys::sharegpt ? ", tags" : ""));
  }
  if (!value.is_string() && !value.is_null())
    return fail(Errc::usage, cat("--map-keys: ", quote(name),
                                 ": expected the name of a column, found ", value.type_name()));
  to[std::string(found->ours)] = value.is_string() ? value.string() : "";
  return {};
}

}  // namespace

std::span<const Handler> packed_handlers() {
  return handlers;
}

Result<const Handler*> find_handler(std::string_view name) {
  std::vector<std::string> known{std::string(text_handler)};
  for (const Handler& handler : handlers) {
    if (handler.name == name) return &handler;
    known.emplace_back(handler.name);
  }
  return fail(Errc::usage, cat("--handler-name: ", quote(name),
                               " is not supported; known: ", join(known, ", ")));
}

Result<ColumnMap> column_map(const Handler& handler, const std::string& map_keys) {
  ColumnMap out;
  for (const auto name : handler.unused) out.columns[std::string(name)] = "";
  // The answer of Alpaca's prompts is their output.
  const bool alpaca_prompt = handler.purpose == Purpose::prompts && handler.keys == MapKeys::alpaca;
  if (alpaca_prompt) out.columns["answer"] = "output";
  if (map_keys.empty()) return out;
  const auto map = parse_json(map_keys, "--map-keys");
  if (!map) return fail(Errc::usage, map.error().what);
  if (!map->is_object())
    return fail(Errc::usage, cat("--map-keys: expected a JSON object, found ", map->type_name()));
  for (const auto& [name, value] : map->object()) {
    if (name == "tags" && handler.keys == MapKeys::sharegpt) {
      auto tags = tags_of(value);
      RETURN_IF_ERROR(tags);
      out.tags = std::move(*tags);
      continue;
    }
    RETURN_IF_ERROR(add_column(handler, name, value, out.columns));
  }
  if (alpaca_prompt && out.columns.count("output") > 0)
    out.columns["answer"] = out.columns["output"];
  return out;
}

}  // namespace troupe::launch::tools::preprocess
