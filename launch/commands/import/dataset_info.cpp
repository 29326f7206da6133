#include "launch/commands/import/dataset_info.h"

#include <filesystem>
#include <optional>

#include "engine/base/file.h"
#include "engine/base/text.h"
#include "launch/commands/import/words.h"
#include "launch/config/data_config.h"
#include "launch/config/schema.h"

namespace troupe::launch {
namespace {

struct DataRegister {
  std::string file;  ///< empty: none was found
  YamlNode entries;
};

const YamlNode* member_of(const YamlNode& map, std::string_view name) {
  for (const auto& [key, value] : map.members)
    if (key == name) return &value;
  return nullptr;
}

std::string text_in(const YamlNode& map, std::string_view name) {
  const YamlNode* found = member_of(map, name);
  return found && found->kind == YamlNode::Kind::scalar ? found->text : "";
}

/// dataset_info.json of dataset_dir, there or near the file that is converted.
DataRegister register_of(const ImportSettings& settings) {
  const std::string folder = settings.theirs("dataset_dir", "data");
  DataRegister out;
  out.file =
      file_near((std::filesystem::path(folder) / "dataset_info.json").lexically_normal().string(),
                settings.run.folder);
  if (out.file.empty()) return out;
  constexpr std::size_t max_file = std::size_t{4} << 20;
  const std::string text = value_or_throw(read_file(out.file, max_file));
  // JSON is read as YAML's flow style.
  out.entries = value_or_throw(parse_yaml(text, out.file));
  return out;
}

/// The maps columns and tags of an entry, as data.map_keys has them.
YamlNode keys_of_entry(const YamlNode& entry) {
  YamlNode keys;
  keys.kind = YamlNode::Kind::map;
  if (const YamlNode* columns = member_of(entry, "columns"))
    for (const auto& each : columns->members) keys.members.push_back(each);
  if (const YamlNode* tags = member_of(entry, "tags")) keys.members.emplace_back("tags", *tags);
  return keys;
}

/// The columns and tags as entries of data.columns and data.tags. Returns "" or why not.
std::string put_keys(ImportSettings& settings, const YamlNode& keys) {
  DataConfig data;
  const std::string why = apply_map_keys(keys, data);
  if (!why.empty()) return why;
  // Pretraining reads the text of the column prompt.
  if (settings.recipe == "pretrain") {
    const std::string text = text_in(keys, "prompt");
    if (!text.empty() && text != "text") settings.put("data.columns.text", yaml_text(text));
    return "";
  }
  for (const auto& [name, column] : data.columns)
    settings.put(cat("data.columns.", name), yaml_text(column));
  for (const auto& [name, tag] : data.tags) settings.put(cat("data.tags.", name), yaml_text(tag));
  return "";
}

/// One data set of the register; `line` gets what cannot be kept of it.
std::string file_of(const YamlNode& entry, const std::string& folder, std::string& problem) {
  const std::string name = text_in(entry, "file_name");
  if (!name.empty()) return (std::filesystem::path(folder) / name).string();
  for (const char* hub : {"hf_hub_url", "ms_hub_url", "om_hub_url", "script_url"})
    if (const std::string from = text_in(entry, hub); !from.empty()) {
      problem = cat("download ", from, " (", hub, ") and write its files in data.path");
      return from;
    }
  problem = "the register names no file";
  return "";
}

void datasets(ImportSettings& settings, const YamlNode& value) {
  const DataRegister known = register_of(settings);
  std::vector<std::string> paths;
  std::optional<YamlNode> keys;
  bool differ = false;
  const std::string folder = std::filesystem::path(known.file).parent_path().string();
  for (const std::string& name : items_of(value)) {
    const YamlNode* entry = known.file.empty() ? nullptr : member_of(known.entries, name);
    std::string problem, path = name;
    YamlNode these;
    these.kind = YamlNode::Kind::map;
    if (entry) {
      path = file_of(*entry, folder, problem);
      these = keys_of_entry(*entry);
    } else if (!known.file.empty()) {
      problem = cat(known.file, " has no data set of this name");
    }
    differ = differ || (keys && yaml_of(*keys) != yaml_of(these));
    keys = these;
    paths.push_back(yaml_text(path));
    if (!problem.empty()) settings.note(cat("data.path: ", name, ": ", problem));
  }
  settings.set("data.path", node_of_value(cat('[', join(paths, ", "), ']')));
  if (known.file.empty())
    settings.note(cat("data.path: ", join(items_of(value), ", "),
                      " are no files here, and no dataset_info.json is here; write the files in "
                      "their place, or give --data FILE"));
  else
    settings.note(cat("data.path: files and columns are those of ", known.file));
  if (differ)
    settings.line(Outcome::no_equivalent,
                  "data.columns: the columns of the data sets differ; write a source of data.mix "
                  "with its columns for each");
  else if (keys && !keys->members.empty())
    if (const std::string why = put_keys(settings, *keys); !why.empty())
      settings.line(Outcome::no_equivalent, cat("columns: ", why));
}

}  // namespace

bool convert_dataset(ImportSettings& settings, std::string_view converter, const YamlNode& value) {
  if (converter == "datasets") {
    datasets(settings, value);
  } else if (converter == "dataset_dir") {
    settings.line(Outcome::became, "part of the paths in data.path");
  } else if (converter == "map_keys") {
    const std::string why = put_keys(
        settings, value.kind == YamlNode::Kind::scalar ? node_of_value(text_of(value)) : value);
    settings.line(why.empty() ? Outcome::became : Outcome::no_equivalent,
                  why.empty() ? "data.columns and data.tags" : why);
  } else {
    return false;
  }
  return true;
}

}  // namespace troupe::launch
