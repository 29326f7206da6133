#include "launch/tools/migration/converters.h"

#include <algorithm>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "launch/config/data_config.h"
#include "launch/config/schema.h"
#include "launch/tools/migration/words.h"

namespace troupe::launch::tools::migration {
namespace {

struct DataRegister {
  std::string file;  ///< empty: none was found
  config::YamlNode entries;
};

const config::YamlNode* member_of(const config::YamlNode& map, std::string_view name) {
  for (const auto& [key, value] : map.members)
    if (key == name) return &value;
  return nullptr;
}

std::string text_in(const config::YamlNode& map, std::string_view name) {
  const config::YamlNode* found = member_of(map, name);
  return found && found->kind == config::YamlNode::Kind::scalar ? found->text : "";
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
  out.entries = value_or_throw(config::parse_yaml(text, out.file));
  return out;
}

/// The maps columns and tags of an entry, as data.map_keys has them.
config::YamlNode keys_of_entry(const config::YamlNode& entry) {
  config::YamlNode keys;
  keys.kind = config::YamlNode::Kind::map;
  if (const config::YamlNode* columns = member_of(entry, "columns"))
    for (const auto& each : columns->members) keys.members.push_back(each);
  if (const config::YamlNode* tags = member_of(entry, "tags"))
    keys.members.emplace_back("tags", *tags);
  return keys;
}

/// The columns and tags as entries of data.columns and data.tags. Returns "" or why not.
std::string put_keys(ImportSettings& settings, const config::YamlNode& keys) {
  config::DataConfig data;
  const std::string why = config::apply_map_keys(keys, data);
  if (!why.empty()) return why;
  // Pretraining reads the text of the column prompt.
  if (settings.recipe == "pretrain") {
    const std::string text = text_in(keys, "prompt");
    if (!text.empty() && text != "text") settings.put("data.columns.text", config::yaml_text(text));
    return "";
  }
  for (const auto& [name, column] : data.columns)
    settings.put(cat("data.columns.", name), config::yaml_text(column));
  for (const auto& [name, tag] : data.tags)
    settings.put(cat("data.tags.", name), config::yaml_text(tag));
  return "";
}

/// One data set of the register; `line` gets what cannot be kept of it.
std::string file_of(const config::YamlNode& entry, const std::string& folder,
                    std::string& problem) {
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

/// A data set of the list that the run names.
struct NamedData {
  std::string path;
  config::YamlNode keys;  ///< columns and tags of the register
  std::string problem;    ///< what cannot be kept of it
};

std::vector<NamedData> named_data(const DataRegister& known, const config::YamlNode& value) {
  const std::string folder = std::filesystem::path(known.file).parent_path().string();
  std::vector<NamedData> out;
  for (const std::string& name : items_of(value)) {
    const config::YamlNode* entry = known.file.empty() ? nullptr : member_of(known.entries, name);
    NamedData data{name, {}, ""};
    data.keys.kind = config::YamlNode::Kind::map;
    if (entry) {
      data.path = file_of(*entry, folder, data.problem);
      data.keys = keys_of_entry(*entry);
    } else if (!known.file.empty()) {
      data.problem = cat(known.file, " has no data set of this name");
    }
    if (!data.problem.empty()) data.problem = cat(name, ": ", data.problem);
    out.push_back(std::move(data));
  }
  return out;
}

bool interleaves(const ImportSettings& settings) {
  return settings.theirs("mix_strategy", "concat").starts_with("interleave");
}

/// The weights of the data sets: interleave_probs, or equal ones. Empty, and reported, if they are
/// not a number above 0 for each.
std::vector<std::string> weights_of(ImportSettings& settings, std::size_t count) {
  const std::string given = settings.theirs("interleave_probs", "");
  std::vector<std::string> out = items_of(node_of_value(given));
  if (given.empty()) return std::vector<std::string>(count, "1");
  const bool numbers = std::ranges::all_of(
      out, [](const std::string& text) { return parse_number<double>(text).value_or(0) > 0; });
  if (out.size() == count && numbers) return out;
  settings.line(Outcome::no_equivalent,
                cat("interleave_probs: expected a number above 0 for each of ", count,
                    " data sets, found ", given));
  return {};
}

/// A source of data.mix as YAML. Returns why its columns cannot be kept, or "".
std::string source_of(const NamedData& data, const std::string& weight, std::string& yaml) {
  config::DataConfig config;
  const std::string why = config::apply_map_keys(data.keys, config);
  if (!why.empty()) return why;
  std::vector<std::string> columns;
  for (const auto& [name, column] : config.columns)
    columns.push_back(cat(name, ": ", config::yaml_text(column)));
  yaml = cat("{path: ", config::yaml_text(data.path), ", weight: ", weight,
             columns.empty() ? "" : cat(", columns: {", join(columns, ", "), '}'), '}');
  return "";
}

void mix(ImportSettings& settings, const std::vector<NamedData>& all) {
  const auto weights = weights_of(settings, all.size());
  if (weights.empty()) return;
  std::vector<std::string> sources(all.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    if (const std::string why = source_of(all[i], weights[i], sources[i]); !why.empty())
      return settings.line(Outcome::no_equivalent, cat("columns: ", why));
  settings.set("data.mix", node_of_value(cat('[', join(sources, ", "), ']')));
  settings.note(
      "data.mix: an epoch is as many rows as all sources have together, and a source begins again "
      "when its rows are used; interleave_under ends with the first that is, interleave_over with "
      "the last. Set train.steps or the epochs of a source for another end");
}

void concatenate(ImportSettings& settings, const std::vector<NamedData>& all) {
  std::vector<std::string> paths;
  bool differ = false;
  for (const NamedData& each : all) {
    paths.push_back(config::yaml_text(each.path));
    differ = differ || yaml_of(each.keys) != yaml_of(all.front().keys);
  }
  settings.set("data.path", node_of_value(cat('[', join(paths, ", "), ']')));
  if (differ)
    return settings.line(Outcome::no_equivalent,
                         "data.columns: the columns of the data sets differ; write a source of "
                         "data.mix with its columns for each");
  if (all.empty() || all.front().keys.members.empty()) return;
  if (const std::string why = put_keys(settings, all.front().keys); !why.empty())
    settings.line(Outcome::no_equivalent, cat("columns: ", why));
}

/// The tags of data sets apply to the run.
void put_tags(ImportSettings& settings, const std::vector<NamedData>& all) {
  const auto tags_of = [](const NamedData& data) {
    const config::YamlNode* tags = member_of(data.keys, "tags");
    return tags ? yaml_of(*tags) : std::string();
  };
  for (const NamedData& each : all)
    if (tags_of(each) != tags_of(all.front()))
      return settings.line(Outcome::no_equivalent,
                           "data.tags: the tags of the data sets differ, and a run has one set of "
                           "tags; convert the rows to one form");
  if (all.empty() || tags_of(all.front()).empty()) return;
  config::DataConfig config;
  if (config::apply_map_keys(all.front().keys, config).empty())
    for (const auto& [name, tag] : config.tags)
      settings.put(cat("data.tags.", name), config::yaml_text(tag));
}

void datasets(ImportSettings& settings, const config::YamlNode& value) {
  const DataRegister known = register_of(settings);
  const auto all = named_data(known, value);
  for (const NamedData& each : all)
    if (!each.problem.empty()) settings.note(cat("data.path: ", each.problem));
  if (interleaves(settings) && all.size() > 1) {
    mix(settings, all);
    put_tags(settings, all);
  } else {
    concatenate(settings, all);
  }
  if (known.file.empty())
    settings.note(cat("data.path: ", join(items_of(value), ", "),
                      " are no files here, and no dataset_info.json is here; write the files in "
                      "their place, or give --data FILE"));
  else
    settings.note(cat("data.path: files and columns are those of ", known.file));
}

/// mix_strategy and interleave_probs, which the list of data sets applies.
void mixing(ImportSettings& settings, std::string_view converter, const std::string& text) {
  const bool several = items_of(node_of_value(settings.theirs("dataset", ""))).size() > 1;
  if (converter == "mix_strategy" && !text.starts_with("interleave"))
    return text == "concat"
               ? settings.line(Outcome::already_default, "data.path with several files")
               : settings.line(Outcome::no_equivalent,
                               "expected concat, interleave_under or interleave_over");
  if (!several) return settings.line(Outcome::already_default, "there is one data set");
  if (interleaves(settings)) return settings.line(Outcome::became, "a part of data.mix");
  settings.line(Outcome::already_default, "mix_strategy is concat, which has no probabilities");
}

}  // namespace

bool convert_dataset(ImportSettings& settings, std::string_view converter,
                     const config::YamlNode& value) {
  if (converter == "datasets") {
    datasets(settings, value);
  } else if (converter == "dataset_dir") {
    settings.line(Outcome::became, "part of the paths in data.path");
  } else if (converter == "mix_strategy" || converter == "interleave_probs") {
    mixing(settings, converter, text_of(value));
  } else if (converter == "map_keys") {
    const std::string why = put_keys(settings, value.kind == config::YamlNode::Kind::scalar
                                                   ? node_of_value(text_of(value))
                                                   : value);
    settings.line(why.empty() ? Outcome::became : Outcome::no_equivalent,
                  why.empty() ? "data.columns and data.tags" : why);
  } else {
    return false;
  }
  return true;
}

}  // namespace troupe::launch::tools::migration
