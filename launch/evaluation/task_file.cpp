#include "launch/evaluation/task_file.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/config/yaml.h"

namespace troupe::launch::evaluation {
namespace {

namespace fs = std::filesystem;
using config::YamlNode;

const std::vector<std::string> known_keys = {"task",
                                             "task_alias",
                                             "tag",
                                             "dataset_path",
                                             "dataset_name",
                                             "dataset_kwargs",
                                             "training_split",
                                             "validation_split",
                                             "test_split",
                                             "fewshot_split",
                                             "process_docs",
                                             "doc_to_text",
                                             "doc_to_target",
                                             "doc_to_choice",
                                             "unsafe_code",
                                             "description",
                                             "process_results",
                                             "target_delimiter",
                                             "num_fewshot",
                                             "fewshot_delimiter",
                                             "fewshot_config",
                                             "metric_list",
                                             "output_type",
                                             "generation_kwargs",
                                             "repeats",
                                             "filter_list",
                                             "should_decontaminate",
                                             "gen_prefix",
                                             "metadata",
                                             "doc_to_decontamination_query",
                                             "include",
                                             "group",
                                             "group_alias",
                                             "aggregate_metric_list"};

/// Keys of lm-evaluation-harness that need what this program does not have.
const std::vector<std::string> refused_keys = {"custom_dataset", "doc_to_image", "doc_to_audio",
                                               "use_prompt", "task_list"};

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

// A scalar without quotation marks, by the rules of YAML 1.1 as PyYAML has them. Octal and
// sexagesimal numbers stay text.
Json plain_scalar(const std::string& text) {
  if (is_one_of(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})) return true;
  if (is_one_of(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"}))
    return false;
  const char *first = text.data() + (text.starts_with('+') ? 1 : 0),
             *last = text.data() + text.size();
  std::int64_t whole = 0;
  const bool octal = text.size() > 1 && *first == '0';
  if (const auto read = std::from_chars(first, last, whole);
      !octal && read.ec == std::errc() && read.ptr == last)
    return whole;
  double real = 0;
  const bool point = text.find('.') != std::string::npos;
  const bool letters = std::ranges::any_of(text, [](char c) { return c == 'n' || c == 'i'; });
  if (const auto read = std::from_chars(first, last, real);
      point && !letters && read.ec == std::errc() && read.ptr == last)
    return real;
  return text;
}

Json json_of(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return {};
    case YamlNode::Kind::scalar:
      return node.quoted ? Json(node.text) : plain_scalar(node.text);
    case YamlNode::Kind::list: {
      Json::Array out;
      for (const YamlNode& item : node.items) out.push_back(json_of(item));
      return out;
    }
    case YamlNode::Kind::map: {
      Json::Object out;
      for (const auto& member : node.members) out.emplace_back(member.name, json_of(member.value));
      return out;
    }
  }
  return {};
}

// The line of the first !function outside comments.
std::optional<int> function_line(std::string_view text) {
  int line = 1;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view content = text.substr(at, end - at);
    const std::size_t tag = content.find("!function"), comment = content.find('#');
    if (tag != std::string_view::npos && tag < comment) return line;
    at = end + 1;
  }
  return std::nullopt;
}

Result<> check_key(const std::string& name, const std::string& where) {
  if (std::ranges::find(known_keys, name) != known_keys.end()) return {};
  if (std::ranges::find(refused_keys, name) != refused_keys.end())
    return fail(Errc::unsupported,
                cat(where, ": the key ", name, " of lm-evaluation-harness is not supported"));
  const std::string near = nearest(name, known_keys);
  return fail(Errc::usage,
              cat(where, ": ", quote(name), " is no key of a task file",
                  near.empty() ? "" : cat("; did you mean ", near, '?'), " (docs/evaluation.md)"));
}

Result<TaskText> read_included(const std::string& path, std::vector<std::string> open);

Result<> include_files(TaskText& into, const Json& names, const std::string& file,
                       const std::vector<std::string>& open) {
  const Json::Array files = names.is_array() ? names.array() : Json::Array{names};
  TaskText merged;
  for (const Json& name : files) {
    if (!name.is_string())
      return fail(Errc::usage, cat(into.where.at("include"), ": include expects names of files"));
    auto text = read_included((fs::path(file).parent_path() / name.string()).string(), open);
    if (!text)
      return fail(text.error().code, cat(into.where.at("include"), ": ", text.error().what));
    for (const auto& [key, value] : text->keys.object()) merged.keys.set(key, value);
    for (const auto& [key, where] : text->where) merged.where[key] = where;
  }
  for (const auto& [key, value] : into.keys.object())
    if (key != "include") merged.keys.set(key, value);
  for (const auto& [key, where] : into.where) merged.where[key] = where;
  merged.file = file;
  into = std::move(merged);
  return {};
}

Result<TaskText> read_included(const std::string& path, std::vector<std::string> open) {
  const std::string name = fs::weakly_canonical(path).string();
  if (std::ranges::find(open, name) != open.end())
    return fail(Errc::usage, cat(path, ": includes itself"));
  open.push_back(name);
  const auto content = read_file(path, 1U << 20);
  RETURN_IF_ERROR(content);
  auto text = parse_task_text(*content, path);
  RETURN_IF_ERROR(text);
  if (const Json* names = text->keys.find("include"); names != nullptr) {
    const Json included = *names;
    RETURN_IF_ERROR(include_files(*text, included, path, open));
  }
  return text;
}

}  // namespace

Result<TaskText> parse_task_text(std::string_view text, const std::string& file) {
  if (const auto line = function_line(text))
    return fail(Errc::unsupported,
                cat(file, ':', *line,
                    ": !function runs Python code, which is not supported; name a "
                    "built-in function instead, such as process_docs: hellaswag "
                    "(docs/evaluation.md)"));
  const auto root = config::parse_yaml(text, file);
  RETURN_IF_ERROR(root);
  if (root->kind != YamlNode::Kind::map)
    return fail(Errc::usage,
                cat(file, ": expected the keys of a task, found ", config::to_string(root->kind)));
  TaskText out;
  out.file = file;
  for (const auto& member : root->members) {
    const std::string where = cat(file, ':', member.value.line);
    RETURN_IF_ERROR(check_key(member.name, where));
    out.keys.set(member.name, json_of(member.value));
    out.where[member.name] = where;
  }
  return out;
}

Result<TaskText> read_task_file(const std::string& path) {
  return read_included(path, {});
}

bool is_group(const TaskText& text) {
  return text.keys.find("group") != nullptr;
}

}  // namespace troupe::launch::evaluation
