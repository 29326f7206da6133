#include "launch/tools/migration/input.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/tools/migration/programs.h"
#include "launch/tools/migration/shell/run.h"
#include "launch/tools/migration/words.h"

namespace troupe::launch::tools::migration {
namespace {

constexpr std::size_t max_value_bytes = 4096;

void flatten(const std::string& prefix, const config::YamlNode& map, const std::string& path,
             std::vector<ForeignSetting>& out) {
  for (const auto& [name, value] : map.members) {
    const std::string key = prefix.empty() ? name : cat(prefix, '.', name);
    if (value.kind == config::YamlNode::Kind::map && !value.members.empty())
      flatten(key, value, path, out);
    else
      out.push_back({key, value, value.line > 0 ? cat(path, ':', value.line) : path, ""});
  }
}

/// The word that names a program of a tool, or a program that is known not to train; npos.
std::size_t program_in(const shell::ScriptCommand& command, bool other) {
  for (std::size_t i = 0; i < command.words.size(); ++i) {
    const std::string& word = command.words[i].value.text;
    if (tool_of(word) || (other && !other_program(word).empty())) return i;
  }
  return std::string::npos;
}

bool trains(const shell::ScriptCommand& command) {
  if (program_in(command, false) == std::string::npos) return false;
  return std::ranges::none_of(command.words, [](const shell::Field& word) {
    return other_program(word.value.text).find(" does not train") != std::string::npos;
  });
}

/// The command that trains, of several the one with the most words.
const shell::ScriptCommand& training_command(const std::vector<shell::ScriptCommand>& commands,
                                             const std::string& path,
                                             std::vector<std::string>& notes) {
  const shell::ScriptCommand* found = nullptr;
  const shell::ScriptCommand* other = nullptr;
  const auto better = [](const shell::ScriptCommand& one, const shell::ScriptCommand* than) {
    return !than || one.uncertain.empty() > than->uncertain.empty() ||
           (one.uncertain.empty() == than->uncertain.empty() &&
            one.words.size() > than->words.size());
  };
  for (const shell::ScriptCommand& each : commands) {
    if (trains(each) && better(each, found)) found = &each;
    if (!other && program_in(each, true) != std::string::npos) other = &each;
  }
  if (!found && other) return *other;
  if (!found)
    throw Failure({Errc::usage, cat(path,
                                    ": no program of a known tool: openrlhf.cli.train_..., "
                                    "verl.trainer..., trl, llamafactory-cli, posttrain_gpt.py")});
  const auto others = std::ranges::count_if(commands, trains) - 1;
  if (!found->uncertain.empty()) {
    const std::string what = cat("line ", found->line, ": whether ",
                                 quote(found->words[program_in(*found, false)].value.text, 60),
                                 " is started depends on ", found->uncertain);
    if (others > 0)
      throw Failure({Errc::bad_input,
                     cat(path, ": ", what, ", and there are ", others,
                         " other training programs; give the variable that it comes from a value "
                         "(--env NAME=VALUE)")});
    notes.push_back(cat(what, "; it is the only training program"));
  }
  for (const shell::ScriptCommand& each : commands)
    if (trains(each) && &each != found)
      notes.push_back(cat("not converted: the training program of line ", each.line,
                          "; this is that of line ", found->line));
  return *found;
}

/// As text with Unix line ends.
Result<std::string> read_text(const std::string& path) {
  auto text = read_file(path, 1u << 20);
  RETURN_IF_ERROR(text);
  std::string out;
  for (std::size_t i = 0; i < text->size(); ++i)
    if ((*text)[i] != '\r' || i + 1 == text->size() || (*text)[i + 1] != '\n') out += (*text)[i];
  return out;
}

Result<ForeignRun> read_script(const std::string& path, const ScriptInput& input) {
  std::vector<std::string> notes;
  const auto command = command_of_script(path, input, notes);
  RETURN_IF_ERROR(command);
  try {
    ForeignRun run =
        read_words(command->words, path, std::filesystem::path(path).parent_path().string());
    for (std::string& note : notes) run.notes.push_back(std::move(note));
    return run;
  } catch (const Failure& failure) {
    return fail(failure);
  }
}

}  // namespace

Result<shell::ScriptCommand> command_of_script(const std::string& path, const ScriptInput& input,
                                               std::vector<std::string>& notes) {
  const auto text = read_text(path);
  RETURN_IF_ERROR(text);
  std::error_code ignored;
  try {
    const auto commands =
        shell::commands_of_script(*text, {path, input.arguments, input.environment,
                                          std::filesystem::current_path(ignored).string()});
    return training_command(commands, path, notes);
  } catch (const Failure& failure) {
    const std::string& what = failure.error().what;
    return fail(failure.error().code, what.starts_with(path) ? what : cat(path, ": ", what));
  }
}

Result<> add_yaml(const std::string& path, ForeignRun& run) {
  const auto text = read_file(path, 1u << 20);
  RETURN_IF_ERROR(text);
  const auto root = config::parse_yaml(*text, path);
  RETURN_IF_ERROR(root);
  if (root->kind != config::YamlNode::Kind::map)
    return fail(Errc::usage, cat(path, ": a map of settings is expected, found ",
                                 config::to_string(root->kind)));
  flatten("", *root, path, run.settings);
  return {};
}

config::YamlNode scalar_node(std::string_view text) {
  config::YamlNode node;
  node.kind = config::YamlNode::Kind::scalar;
  node.text = text;
  return node;
}

std::string text_of(const config::YamlNode& node) {
  if (node.kind == config::YamlNode::Kind::null) return "null";
  if (node.kind == config::YamlNode::Kind::scalar) {
    if (node.text == "True" || node.text == "False") return node.text == "True" ? "true" : "false";
    return node.text == "None" || node.text == "~" ? "null" : node.text;
  }
  return node.kind == config::YamlNode::Kind::list ? cat('[', join(items_of(node), ", "), ']')
                                                   : "{}";
}

std::vector<std::string> items_of(const config::YamlNode& node) {
  std::vector<std::string> out;
  for (const config::YamlNode& item : node.items) out.push_back(text_of(item));
  if (node.kind != config::YamlNode::Kind::scalar) return out;
  for (const auto part : tables::pieces(node.text, ','))
    for (const auto each : tables::pieces(part, ' ')) out.emplace_back(each);
  return out;
}

Result<ForeignRun> read_foreign_words(const std::vector<std::string>& words,
                                      const std::string& where) {
  std::vector<shell::Field> fields;
  for (const std::string& word : words) fields.push_back({{word, "", ""}});
  try {
    return read_words(fields, where, "");
  } catch (const Failure& failure) {
    return fail(failure);
  }
}

void resolve_references(ForeignRun& run) {
  constexpr int max_depth = 8;  // of references to references
  std::map<std::string_view, const config::YamlNode*> first;
  for (const ForeignSetting& each : run.settings) first.emplace(each.key, &each.value);
  const auto value_of = [&](std::string_view key) {
    const auto found = first.find(key);
    return found == first.end() ? nullptr : found->second;
  };
  for (int depth = 0; depth < max_depth; ++depth)
    for (ForeignSetting& each : run.settings) {
      if (each.value.kind != config::YamlNode::Kind::scalar || !each.unknown.empty()) continue;
      const auto begin = each.value.text.find("${");
      const auto end = each.value.text.find('}', begin);
      if (begin == std::string::npos || end == std::string::npos) continue;
      const config::YamlNode* value = value_of(each.value.text.substr(begin + 2, end - begin - 2));
      if (value == nullptr || value == &each.value) continue;
      const bool whole = begin == 0 && end + 1 == each.value.text.size();
      config::YamlNode resolved = whole ? *value : each.value;
      if (!whole) resolved.text.replace(begin, end + 1 - begin, text_of(*value));
      if (resolved.text.size() > max_value_bytes) continue;
      each.value = std::move(resolved);
    }
}

void add_overrides(const std::vector<std::string>& words, ForeignRun& run) {
  for (const std::string& word : words) {
    const auto equals = word.find('=');
    if (!is_override(word)) {
      run.unread.push_back(word);
      continue;
    }
    run.settings.push_back({tables::normal_name(word.substr(0, equals)),
                            node_of_text(word.substr(equals + 1)), "the command line", ""});
  }
}

Result<ForeignRun> read_foreign_file(const std::string& path, const ScriptInput& input) {
  if (path.ends_with(".sh")) return read_script(path, input);
  ForeignRun run;
  run.folder = std::filesystem::path(path).parent_path().string();
  RETURN_IF_ERROR(add_yaml(path, run));
  return run;
}

}  // namespace troupe::launch::tools::migration
