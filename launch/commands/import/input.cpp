#include "launch/commands/import/input.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>

#include "engine/base/file.h"
#include "engine/base/text.h"
#include "launch/commands/import/variables.h"

namespace troupe::launch {
namespace {

constexpr std::size_t max_value_bytes = 4096;

struct Program {
  std::string_view part;  ///< of the word that names it
  Tool tool;
};
constexpr std::array programs{Program{"openrlhf.cli.", Tool::openrlhf},
                              Program{"verl.trainer.", Tool::verl},
                              Program{"verl/trainer/", Tool::verl},
                              Program{"llamafactory-cli", Tool::llama_factory},
                              Program{"llamafactory.", Tool::llama_factory},
                              Program{"posttrain_gpt.py", Tool::mindspeed},
                              Program{"pretrain_gpt.py", Tool::mindspeed},
                              Program{"cli/train_", Tool::mindspeed},
                              Program{"trl/scripts/", Tool::trl},
                              Program{"examples/scripts/", Tool::trl}};

std::optional<Tool> tool_of(const std::string& word) {
  if (word == "trl") return Tool::trl;
  for (const Program& program : programs)
    if (word.find(program.part) != std::string::npos) return program.tool;
  return std::nullopt;
}

/// "train_dpo" of "openrlhf.cli.train_dpo" or "cli/train_dpo.py".
std::string last_name(std::string word) {
  if (word.ends_with(".py")) word.resize(word.size() - 3);
  return word.substr(word.find_last_of("./") + 1);
}

void flatten(const std::string& prefix, const YamlNode& map, const std::string& path,
             std::vector<ForeignSetting>& out) {
  for (const auto& [name, value] : map.members) {
    const std::string key = prefix.empty() ? name : cat(prefix, '.', name);
    if (value.kind == YamlNode::Kind::map && !value.members.empty())
      flatten(key, value, path, out);
    else
      out.push_back({key, value, value.line > 0 ? cat(path, ':', value.line) : path});
  }
}

Result<> add_yaml(const std::string& path, ForeignRun& run) {
  const auto text = read_file(path, 1u << 20);
  RETURN_IF_ERROR(text);
  const auto root = parse_yaml(*text, path);
  RETURN_IF_ERROR(root);
  if (root->kind != YamlNode::Kind::map)
    return fail(Errc::usage,
                cat(path, ": a map of settings is expected, found ", to_string(root->kind)));
  flatten("", *root, path, run.settings);
  return {};
}

struct Word {
  std::string text;
  bool quoted = false;  ///< in whole or in part
};

/// The words of each command of a shell script, without comments; a here-document is read as
/// commands, too.
class ScriptLines {
 public:
  explicit ScriptLines(const std::string& text) : text_(text) {}

  std::vector<std::vector<Word>> read() {
    for (at_ = 0; at_ < text_.size(); ++at_) next(text_[at_]);
    end_word();
    return std::move(lines_);
  }

 private:
  void next(char c) {
    const bool escapes = c == '\\' && mark_ != '\'' && at_ + 1 < text_.size();
    if (escapes && (mark_ == 0 || text_[at_ + 1] == '\n')) {
      if (text_[++at_] != '\n') add(text_[at_]);
    } else if (mark_ != 0) {
      if (c == mark_)
        mark_ = 0;
      else
        add(c);
    } else if (c == '\'' || c == '"') {
      mark_ = c;
      in_word_ = word_.quoted = true;
    } else if (c == '#' && !in_word_) {
      at_ = std::min(text_.find('\n', at_), text_.size()) - 1;
    } else if (c == '\n' || c == ';' || c == '|') {
      end_word();
      if (!lines_.back().empty()) lines_.emplace_back();
    } else if (c == ' ' || c == '\t' || c == '\r') {
      end_word();
    } else {
      add(c);
    }
  }

  void add(char c) {
    word_.text += c;
    in_word_ = true;
  }

  void end_word() {
    if (in_word_) lines_.back().push_back(std::exchange(word_, {}));
    in_word_ = false;
  }

  const std::string& text_;
  std::size_t at_ = 0;
  std::vector<std::vector<Word>> lines_{1};
  Word word_;
  bool in_word_ = false;
  char mark_ = 0;  ///< the open quotation mark
};

/// The words that `word` becomes: an unquoted value of several words is several, as in a shell.
Result<std::vector<std::string>> words_of(const Word& word, Variables& variables) {
  auto text = variables.expand(word.text);
  RETURN_IF_ERROR(text);
  if (word.quoted || *text == word.text) return std::vector<std::string>{std::move(*text)};
  std::vector<std::string> out;
  std::istringstream fields(*text);
  for (std::string field; fields >> field;) out.push_back(field);
  return out;
}

/// NAME=VALUE alone on its line.
Result<> assign(const std::vector<Word>& words, Variables& variables) {
  const auto equals = words.size() == 1 ? words[0].text.find('=') : std::string::npos;
  if (equals == std::string::npos || words[0].text.find('.') < equals) return {};
  auto value = variables.expand(words[0].text.substr(equals + 1));
  RETURN_IF_ERROR(value);
  return variables.assign(words[0].text.substr(0, equals), std::move(*value));
}

/// The line with a known program, with its variables replaced.
Result<std::vector<std::string>> command_of_script(const std::string& text) {
  Variables variables;
  std::vector<std::string> found;
  for (const auto& words : ScriptLines(text).read()) {
    RETURN_IF_ERROR(assign(words, variables));
    std::vector<std::string> line;
    for (const Word& word : words) {
      auto some = words_of(word, variables);
      RETURN_IF_ERROR(some);
      std::ranges::move(*some, std::back_inserter(line));
    }
    const bool known = std::ranges::any_of(
        line, [](const std::string& word) { return tool_of(word).has_value(); });
    if (known && line.size() > found.size()) found = line;
  }
  std::erase(found, "$@");
  return found;
}

bool is_number(const std::string& word) {
  double number = 0;
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), number);
  return code == std::errc() && end == word.data() + word.size();
}

bool is_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && !is_number(word);
}

bool is_override(const std::string& word) {
  const auto equals = word.find('=');
  return equals != std::string::npos && equals > 0 && !is_flag(word) &&
         word.find_first_of(" /{[") > equals;
}

YamlNode node_of_text(std::string_view text) {
  if (text.starts_with('[') || text.starts_with('{'))
    if (auto parsed = parse_yaml(text, "a value")) return *parsed;
  return scalar_node(text);
}

/// Devices that the words of a launcher name: --nproc_per_node 8 --nnodes 2.
std::int64_t devices_of(const std::vector<std::string>& words) {
  std::int64_t devices = 0, nodes = 1;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto equals = words[i].find('=');
    const std::string name = normal_name(words[i].substr(0, equals)),
                      value = equals != std::string::npos ? words[i].substr(equals + 1)
                              : i + 1 < words.size()      ? words[i + 1]
                                                          : "";
    std::int64_t number = 0;
    std::from_chars(value.data(), value.data() + value.size(), number);
    if (name == "nproc_per_node" || name == "num_gpus" || name == "num_processes" || name == "np")
      devices = number;
    if (name == "nnodes" || name == "num_nodes") nodes = std::max<std::int64_t>(1, number);
  }
  return devices * nodes;
}

class WordReader {
 public:
  WordReader(const std::vector<std::string>& words, std::string where)
      : words_(words), where_(std::move(where)) {}

  Result<ForeignRun> read() {
    const auto program = std::ranges::find_if(
        words_, [](const std::string& word) { return tool_of(word).has_value(); });
    if (program == words_.end())
      return fail(Errc::usage, cat(where_,
                                   ": no program of a known tool: openrlhf.cli.train_..., "
                                   "verl.trainer..., trl, llamafactory-cli, posttrain_gpt.py"));
    run_.tool = tool_of(*program);
    const std::vector<std::string> before(words_.begin(), program);
    run_.launcher = join(before, " ");
    run_.devices = devices_of(before);
    run_.method = last_name(*program);
    at_ = static_cast<std::size_t>(program - words_.begin()) + 1;
    if ((*program == "trl" || program->ends_with("llamafactory-cli")) && at_ < words_.size())
      run_.method = words_[at_++];
    while (at_ < words_.size()) RETURN_IF_ERROR(next());
    return std::move(run_);
  }

 private:
  Result<> next() {
    const std::string word = words_[at_++];
    if (is_flag(word)) return option(word);
    if (is_override(word)) {
      const auto equals = word.find('=');
      add(normal_name(word.substr(0, equals)), node_of_text(word.substr(equals + 1)));
    } else if (word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json")) {
      return add_yaml(word, run_);
    } else if (word != "\\" && word != "--") {
      run_.unread.push_back(word);
    }
    return {};
  }

  Result<> option(const std::string& word) {
    const auto equals = word.find('=');
    const std::string key = normal_name(word.substr(0, equals));
    std::vector<std::string> values;
    if (equals != std::string::npos) values.push_back(word.substr(equals + 1));
    while (equals == std::string::npos && at_ < words_.size() && !is_flag(words_[at_]) &&
           !is_override(words_[at_]))
      values.push_back(words_[at_++]);
    if (key == "config" && values.size() == 1) return add_yaml(values[0], run_);
    if (values.size() < 2) {
      add(key, values.empty() ? scalar_node("true") : node_of_text(values[0]));
      return {};
    }
    YamlNode list;
    list.kind = YamlNode::Kind::list;
    for (const std::string& value : values) list.items.push_back(scalar_node(value));
    add(key, std::move(list));
    return {};
  }

  void add(std::string key, YamlNode value) {
    run_.settings.push_back({std::move(key), std::move(value), where_});
  }

  const std::vector<std::string>& words_;
  std::string where_;
  std::size_t at_ = 0;
  ForeignRun run_;
};

}  // namespace

YamlNode scalar_node(std::string_view text) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.text = text;
  return node;
}

std::string text_of(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::null) return "null";
  if (node.kind == YamlNode::Kind::scalar) {
    if (node.text == "True" || node.text == "False") return node.text == "True" ? "true" : "false";
    return node.text == "None" || node.text == "~" ? "null" : node.text;
  }
  return node.kind == YamlNode::Kind::list ? cat('[', join(items_of(node), ", "), ']') : "{}";
}

std::vector<std::string> items_of(const YamlNode& node) {
  std::vector<std::string> out;
  for (const YamlNode& item : node.items) out.push_back(text_of(item));
  if (node.kind != YamlNode::Kind::scalar) return out;
  for (const auto part : pieces(node.text, ','))
    for (const auto each : pieces(part, ' ')) out.emplace_back(each);
  return out;
}

Result<ForeignRun> read_foreign_words(const std::vector<std::string>& words,
                                      const std::string& where) {
  return WordReader(words, where).read();
}

void resolve_references(ForeignRun& run) {
  constexpr int max_depth = 8;  // of references to references
  std::map<std::string_view, const YamlNode*> first;
  for (const ForeignSetting& each : run.settings) first.emplace(each.key, &each.value);
  const auto value_of = [&](std::string_view key) {
    const auto found = first.find(key);
    return found == first.end() ? nullptr : found->second;
  };
  for (int depth = 0; depth < max_depth; ++depth)
    for (ForeignSetting& each : run.settings) {
      if (each.value.kind != YamlNode::Kind::scalar) continue;
      const auto begin = each.value.text.find("${");
      const auto end = each.value.text.find('}', begin);
      if (begin == std::string::npos || end == std::string::npos) continue;
      const YamlNode* value = value_of(each.value.text.substr(begin + 2, end - begin - 2));
      if (value == nullptr || value == &each.value) continue;
      const bool whole = begin == 0 && end + 1 == each.value.text.size();
      YamlNode resolved = whole ? *value : each.value;
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
    run.settings.push_back({normal_name(word.substr(0, equals)),
                            node_of_text(word.substr(equals + 1)), "the command line"});
  }
}

Result<ForeignRun> read_foreign_file(const std::string& path) {
  if (!path.ends_with(".sh")) {
    ForeignRun run;
    RETURN_IF_ERROR(add_yaml(path, run));
    return run;
  }
  const auto text = read_file(path, 1u << 20);
  RETURN_IF_ERROR(text);
  const auto words = command_of_script(*text);
  if (!words) return fail(words.error().code, cat(path, ": ", words.error().what));
  return read_foreign_words(*words, path);
}

}  // namespace troupe::launch
