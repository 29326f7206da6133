#include "launch/tools/migration/words.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "engine/base/files/file.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "launch/tools/migration/programs.h"

namespace troupe::launch::tools::migration {
namespace {

bool is_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && !parse_number<double>(word);
}

/// "train_dpo" of "openrlhf.cli.train_dpo" or "cli/train_dpo.py".
std::string last_name(std::string word) {
  if (word.ends_with(".py")) word.resize(word.size() - 3);
  return word.substr(word.find_last_of("./") + 1);
}

/// Devices that the words of a launcher name: --nproc_per_node 8 --nnodes 2.
std::int64_t devices_of(const std::vector<std::string>& words) {
  std::int64_t devices = 0, nodes = 1;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto equals = words[i].find('=');
    const std::string name = tables::normal_name(words[i].substr(0, equals)),
                      value = equals != std::string::npos ? words[i].substr(equals + 1)
                              : i + 1 < words.size()      ? words[i + 1]
                                                          : "";
    std::int64_t number = 0;
    std::from_chars(value.data(), value.data() + value.size(), number);
    if (name == "nproc_per_node" || name == "num_gpus" || name == "num_processes" || name == "np")
      devices = number;
    if (name == "nnodes" || name == "num_nodes") nodes = std::max<std::int64_t>(1, number);
  }
  constexpr std::int64_t most = 1 << 20;
  return std::clamp<std::int64_t>(devices, 0, most) * std::min(nodes, most);
}

/// Hydra's quotes, which a script passes where a variable has them.
std::string without_quotes(const std::string& text) {
  const bool quoted = text.size() > 1 && (text[0] == '\'' || text[0] == '"') &&
                      text.find(text[0], 1) == text.size() - 1;
  return quoted ? text.substr(1, text.size() - 2) : text;
}

/// Configurations that verl's package has, whose values are its defaults.
bool is_own_configuration(const std::string& name) {
  if (name.starts_with("fully_async_ppo_") || name.starts_with("one_step_off_ppo_")) return true;
  return name == "ppo_trainer" || name == "ppo_megatron_trainer" || name == "sft_trainer" ||
         name == "sft_trainer_engine" || name == "generation";
}

class WordReader {
 public:
  WordReader(const std::vector<shell::Field>& words, std::string where, std::string folder)
      : words_(words), where_(std::move(where)), folder_(std::move(folder)) {}

  ForeignRun read() {
    program();
    while (at_ < words_.size()) next();
    configuration();
    run_.folder = folder_;
    return std::move(run_);
  }

 private:
  std::string text(std::size_t at) const { return words_[at].value.text; }

  void program() {
    std::string other;
    while (at_ < words_.size() && !tool_of(text(at_))) ++at_;
    for (const shell::Field& word : words_)
      if (other.empty()) other = other_program(word.value.text);
    const bool found = at_ < words_.size();
    if (!other.empty() && (!found || other.find(" does not train") != std::string::npos))
      throw Failure({Errc::unsupported, cat(where_, ": ", other)});
    if (!found)
      throw Failure({Errc::usage, cat(where_,
                                      ": no program of a known tool: openrlhf.cli.train_..., "
                                      "verl.trainer..., trl, llamafactory-cli, posttrain_gpt.py")});
    const std::string program = text(at_);
    run_.tool = tool_of(program);
    std::vector<std::string> before;
    for (std::size_t i = 0; i < at_; ++i) before.push_back(text(i));
    run_.launcher = join(before, " ");
    run_.devices = devices_of(before);
    run_.method = last_name(program);
    ++at_;
    if ((program == "trl" || program.ends_with("llamafactory-cli")) && at_ < words_.size())
      run_.method = text(at_++);
    if (program.ends_with("llamafactory-cli") && run_.method != "train")
      throw Failure(
          {Errc::unsupported, cat(where_, ": llamafactory-cli ", run_.method,
                                  " does not train; troupe chat, serve, eval and merge are its "
                                  "counterparts")});
  }

  /// A word that may be any settings, or none.
  [[noreturn]] void open(const shell::Field& word) {
    throw Failure(
        {Errc::bad_input,
         cat(where_, ':', word.line, ": the word ", quote(word.value.text, 60),
             " may be any settings, and it could not be evaluated: it depends on ",
             word.value.unknown,
             "; give the variable that it comes from a value (--env NAME=VALUE), or write the "
             "words into the script")});
  }

  bool is_option(std::size_t at) const { return is_flag(text(at)) && known_before(at) > 1; }

  /// Where the first part that is not known begins.
  std::size_t known_before(std::size_t at) const {
    const shell::Value& value = words_[at].value;
    return value.unknown.empty() ? value.text.size() : value.unknown_at;
  }

  /// The setting's name is known.
  bool is_setting(std::size_t at) const {
    return is_override(text(at)) && text(at).find('=') < known_before(at);
  }

  void next() {
    const shell::Field& word = words_[at_++];
    if (is_option(at_ - 1)) return option(word);
    if (is_setting(at_ - 1)) {
      const auto equals = word.value.text.find('=');
      add(tables::normal_name(word.value.text.substr(0, equals)),
          node_of_text(without_quotes(word.value.text.substr(equals + 1))), word);
    } else if (!word.value.unknown.empty()) {
      open(word);
    } else if (is_yaml(word.value.text)) {
      value_or_throw(add_yaml(near(word.value.text), run_));
    } else if (word.value.text != "\\" && word.value.text != "--") {
      run_.unread.push_back(word.value.text);
    }
  }

  static bool is_yaml(const std::string& word) {
    return word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json");
  }

  std::string near(const std::string& path) const {
    const std::string found = file_near(path, folder_);
    return found.empty() ? path : found;
  }

  void option(const shell::Field& word) {
    const std::string& text_of_word = word.value.text;
    const auto equals = text_of_word.find('=');
    const std::string key = tables::normal_name(text_of_word.substr(0, equals));
    if (equals != std::string::npos) return value(key, {text_of_word.substr(equals + 1)}, word);
    std::vector<std::string> values;
    shell::Field from = word;
    while (at_ < words_.size() && !is_option(at_) && !is_setting(at_)) {
      const shell::Field& next = words_[at_];
      // A second value that is not known may be another option.
      if (next.open && !values.empty()) open(next);
      if (from.value.unknown.empty()) from.value.unknown = next.value.unknown;
      if (from.value.unset.empty()) from.value.unset = next.value.unset;
      values.push_back(next.value.text);
      ++at_;
    }
    value(key, values, from);
  }

  void value(const std::string& key, const std::vector<std::string>& values,
             const shell::Field& from) {
    if (values.size() == 1 && (key == "config_path" || key == "config_name") &&
        run_.tool == tables::Tool::verl) {
      if (!from.value.unknown.empty()) open(from);
      (key == "config_path" ? config_path_ : config_name_) = values[0];
      return;
    }
    if (key == "config" && values.size() == 1) {
      if (!from.value.unknown.empty()) open(from);
      value_or_throw(add_yaml(near(values[0]), run_));
      return;
    }
    if (values.size() < 2)
      return add(key, values.empty() ? scalar_node("true") : node_of_text(values[0]), from);
    config::YamlNode list;
    list.kind = config::YamlNode::Kind::list;
    for (const std::string& each : values) list.items.push_back(scalar_node(each));
    add(key, std::move(list), from);
  }

  void add(const std::string& key, config::YamlNode value, const shell::Field& from) {
    const std::string where = from.line > 0 ? cat(where_, ':', from.line) : where_;
    if (!from.value.unset.empty())
      run_.notes.push_back(cat(key, ": ", from.value.unset,
                               " is not set, and empty as in bash; --env NAME=VALUE sets it"));
    run_.settings.push_back({key, std::move(value), where, from.value.unknown});
  }

  /// Hydra's --config-path and --config-name: the file's settings come before those of the words.
  void configuration() {
    std::string name = config_name_;
    if (name.ends_with(".yaml")) name.resize(name.size() - 5);
    if (name.empty() && config_path_.empty()) return;
    if (name.empty()) name = "ppo_trainer";
    const std::string path =
        (std::filesystem::path(config_path_) / cat(name, ".yaml")).lexically_normal().string();
    const std::string found = file_near(path, folder_);
    if (found.empty() && is_own_configuration(name)) return;
    if (found.empty())
      throw Failure(
          {Errc::not_found, cat(where_, ": the settings of --config-name ", quote(name, 60),
                                " are in no file here: expected ", quote(path, 160),
                                "; import the script in a copy of its repository")});
    ForeignRun before;
    value_or_throw(add_yaml(found, before));
    std::erase_if(before.settings, [](const ForeignSetting& each) {
      return each.key == "defaults" || each.key.starts_with("hydra.");
    });
    for (ForeignSetting& each : run_.settings) before.settings.push_back(std::move(each));
    run_.settings = std::move(before.settings);
  }

  const std::vector<shell::Field>& words_;
  std::string where_, folder_, config_path_, config_name_;
  std::size_t at_ = 0;
  ForeignRun run_;
};

}  // namespace

bool is_override(const std::string& word) {
  const auto equals = word.find('=');
  return equals != std::string::npos && equals > 0 && !is_flag(word) &&
         word.find_first_of(" /{[") > equals;
}

config::YamlNode node_of_text(std::string_view text) {
  if (text.starts_with('[') || text.starts_with('{'))
    if (auto parsed = config::parse_yaml(text, "a value")) return *parsed;
  return scalar_node(text);
}

std::string file_near(const std::string& path, const std::string& folder) {
  constexpr int levels = 8;
  std::error_code ignored;
  namespace fs = std::filesystem;
  if (fs::is_regular_file(path, ignored)) return path;
  // A script is started in the root of its repository, which import may not be.
  fs::path below = path;
  if (below.is_absolute()) below = below.lexically_relative(fs::current_path(ignored));
  if (below.empty() || *below.begin() == "..") return "";
  fs::path above = fs::absolute(folder.empty() ? "." : folder, ignored).lexically_normal();
  for (int level = 0; level < levels; ++level, above = above.parent_path()) {
    if (fs::is_regular_file(above / below, ignored)) return (above / below).string();
    if (above == above.parent_path()) break;
  }
  return "";
}

ForeignRun read_words(const std::vector<shell::Field>& words, const std::string& where,
                      const std::string& folder) {
  return WordReader(words, where, folder).read();
}

}  // namespace troupe::launch::tools::migration
