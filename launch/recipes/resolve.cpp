#include "launch/recipes/resolve.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "engine/adapter/model_folders.h"
#include "engine/base/files/file.h"
#include "engine/base/files/read_stream.h"
#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "launch/config/data_config.h"
#include "launch/config/paths.h"
#include "launch/config/schema.h"
#include "launch/config/yaml.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/validate.h"
#include "launch/tools/tables/advice.h"
#include "launch/tools/tables/tool_table.h"

namespace troupe::launch::recipes {

namespace {

constexpr std::size_t max_config_bytes = 1u << 20;

/// True for standard input and for bash's <(command).
bool is_stream(std::string_view path) {
  return path == "-" || path == "/dev/stdin" || path.starts_with("/dev/fd/");
}

/// A file without line numbers, for JSON that is not YAML (tabs, for one).
config::YamlNode from_json(const Json& json) {
  config::YamlNode node;
  if (json.is_null()) return node;
  if (json.is_object()) {
    node.kind = config::YamlNode::Kind::map;
    for (const auto& [name, value] : json.object())
      node.members.push_back({name, from_json(value)});
  } else if (json.is_array()) {
    node.kind = config::YamlNode::Kind::list;
    for (const Json& item : json.array()) node.items.push_back(from_json(item));
  } else {
    node.kind = config::YamlNode::Kind::scalar;
    node.quoted = json.is_string();
    node.text = json.is_string() ? json.string() : json.dump();
  }
  return node;
}

bool is_name_of_a_tool(const std::string& key) {
  return std::ranges::any_of(tools::tables::all_tools, [&](tools::tables::Tool tool) {
    return std::ranges::any_of(
        tools::tables::keys_of(tool), [&](const tools::tables::ToolKey& row) {
          return std::ranges::find(row.names, tools::tables::normal_name(key)) != row.names.end();
        });
  });
}

class Resolver {
 public:
  Resolver() {
    for (const config::Field& field : config::fields())
      out_.origins.emplace(field.key, config::default_origin);
  }

  void file(const std::string& path) {
    file_ = path;
    const auto found = is_stream(path)
                           ? read_stream(path == "-" ? "/dev/stdin" : path, max_config_bytes)
                           : read_file(path, max_config_bytes);
    if (!found) {
      missing_ += found.error().code == Errc::not_found;
      return unread(cat("--config: ", found.error().what));
    }
    text(*found, path);
  }

  void text(std::string_view text, const std::string& path) {
    auto root = config::parse_yaml(text, path);
    if (!root) {
      const auto json = parse_json(text, path, {.depth = 16, .bytes = max_config_bytes});
      if (!json) return unread(root.error().what);
      root = from_json(*json);
    }
    if (root->kind == config::YamlNode::Kind::null) return;
    if (root->kind != config::YamlNode::Kind::map)
      return unread(
          cat(path, ": a map of keys is expected, found ", config::to_string(root->kind)));
    walk("", *root, path);
  }

  void set(const std::string& text) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return problem(cat("--set ", quote(text), ": key=value is expected"));
    const std::string key = text.substr(0, equals);
    std::string value = text.substr(equals + 1);
    if (config::is_section(key) && !config::find_field(key)) return set_section(key, value);
    give(key, std::move(value), "--set");
  }

  /// A setting that --set may not give as well, with another value.
  void option(const OptionSetting& given) {
    for (const Given& each : given_)
      if (each.key == given.key && each.origin.starts_with("--") && each.text != given.value)
        problem(cat(given.key, " is given twice: ", each.origin, ' ', each.text, " and ",
                    given.option, ' ', given.value));
    give(given.key, given.value, given.option);
  }

  void give(const std::string& key, std::string value, const std::string& origin) {
    config::YamlNode node;
    node.kind = config::YamlNode::Kind::scalar;
    node.text = value;
    const std::string as_given = value;
    const config::Field* field = config::find_field(key);
    if (field && field->kind == config::ValueKind::numbers &&
        value.find(',') != std::string::npos && !value.starts_with('['))
      value = cat('[', value, ']');  // 0.9,0.95
    const bool flow = value.starts_with('[') || value.starts_with('{');
    if (field && flow && config::is_collection(field->kind)) {  // a text may start with a bracket
      if (const char close = value[0] == '[' ? ']' : '}'; value.find(close) == std::string::npos)
        return wrong(key, cat(key, " (", origin, "): the bracket ", value[0], " is not closed"));
      auto parsed = config::parse_yaml(value, cat(origin, ' ', key));
      if (!parsed) return problem(parsed.error().what);
      node = std::move(*parsed);
    }
    given_.push_back({key, std::move(node), origin, as_given});
  }

  void algorithm(const std::string& name) {
    if (!name.empty()) given_.push_back({"algorithm", word(name), "--algorithm", name});
  }

  Result<Resolved> finish(bool check_files) {
    apply(check_files);
    if (!unread_) validate_all(check_files);
    if (problems_.empty()) return std::move(out_);
    const Errc code = missing_ == problems_.size() ? Errc::not_found : Errc::usage;
    const std::string head = problems_.size() == 1
                                 ? "the configuration has a problem:"
                                 : cat("the configuration has ", problems_.size(), " problems:");
    return fail(
        code, cat(head, "\n  - ", join(problems_, "\n  - "), missing_ > 0 ? base_of_paths() : ""));
  }

 private:
  void problem(std::string text) { problems_.push_back(std::move(text)); }
  /// What is missing or contradicts other settings because of it is not reported.
  void wrong(const std::string& key, std::string text) {
    reported_.insert(key);
    problem(std::move(text));
  }
  /// A file in another directory, whose paths one may take for relative to it.
  std::string base_of_paths() const {
    const auto folder = std::filesystem::path(file_).parent_path();
    std::error_code failed;
    const auto here = std::filesystem::current_path(failed);
    if (is_stream(file_) || folder.empty() || failed ||
        std::filesystem::equivalent(folder, here, failed))
      return "";
    return cat("\n  (paths are relative to the current directory, ", here.string(), ", not to ",
               file_, ")");
  }
  /// Reports an unreadable file only: the values in it are not missing.
  void unread(std::string text) {
    unread_ = true;
    problem(std::move(text));
  }

  void validate_all(bool check_files) {
    Findings findings{
        .problems = {}, .missing = 0, .warnings = {}, .reported = reported_, .unused = {}};
    validate(out_.config, out_.origins, findings);
    if (check_files) validate_files(out_.config, findings);
    missing_ += findings.missing;
    problems_.insert(problems_.end(), findings.problems.begin(), findings.problems.end());
    out_.warnings.insert(out_.warnings.end(), findings.warnings.begin(), findings.warnings.end());
  }

  /// --set train.early_stopping='{metric: eval/loss, patience: 3}'
  void set_section(const std::string& key, const std::string& value) {
    const std::string one_by_one = cat("--set ", key, ": is a section; set its keys one by one");
    if (!value.starts_with('{')) return problem(one_by_one);
    const auto map = config::parse_yaml(value, cat("--set ", key));
    if (!map) return problem(map.error().what);
    for (const auto& [name, member] : map->members) {
      if (member.kind != config::YamlNode::Kind::scalar) return problem(one_by_one);
      given_.push_back({cat(key, '.', name), member, "--set", ""});
    }
  }

  /// A model that is an adapter: its base is the model, and the run trains the adapter further.
  void adapter_as_model() {
    config::RunConfig& config = out_.config;
    if (!engine::adapter::is_only_adapter(config.model)) return;
    const auto folders = engine::adapter::model_folders(config.model, config.lora.adapter);
    if (!folders) return problem(cat("model = ", folders.error().what));
    out_.warnings.push_back(cat("model = ", config.model, ": is a LoRA adapter of ", folders->model,
                                "; the run trains this adapter further (model = ", folders->model,
                                ", lora.adapter = ", config.model,
                                "). To start from the merged model: troupe merge --model ",
                                folders->model, " --adapter ", config.model,
                                " --output NEW, then model = NEW"));
    config.model = folders->model;
    config.lora.adapter = folders->adapter;
    out_.origins["lora.adapter"] = out_.origins["model"];
  }

  void walk(const std::string& prefix, const config::YamlNode& map, const std::string& file) {
    for (const auto& [name, value] : map.members) {
      const std::string key = prefix.empty() ? name : cat(prefix, '.', name);
      const std::string origin = value.line > 0 ? cat(file, ':', value.line) : file;
      if (!config::find_field(key) && config::is_section(key)) {
        if (value.kind == config::YamlNode::Kind::map)
          walk(key, value, file);
        else if (value.kind != config::YamlNode::Kind::null)
          not_a_section(key, value, origin);
      } else {
        given_.push_back({key, value, origin, ""});
      }
    }
  }

  /// `data: FILE`, as other tools write it.
  void not_a_section(const std::string& key, const config::YamlNode& value,
                     const std::string& origin) {
    const std::string path = key + ".path";
    const bool has_path = config::find_field(path) != nullptr;
    wrong(has_path ? path : key, cat(origin, ": ", key, " is a section; a map is expected, found ",
                                     config::to_string(value.kind),
                                     has_path ? cat("; write ", key, ": {path: ...}") : ""));
  }

  struct Given {
    std::string key;
    config::YamlNode node;
    std::string origin;
    std::string text;  ///< on the command line
  };

  static config::YamlNode word(std::string_view text) {
    config::YamlNode node;
    node.kind = config::YamlNode::Kind::scalar;
    node.text = text;
    return node;
  }

  /// The last value given for a key, before any is applied.
  std::string last(std::string_view key) const {
    std::string text;
    for (const Given& each : given_)
      if (each.key == key && each.node.kind == config::YamlNode::Kind::scalar)
        text = each.node.text;
    return text;
  }

  /// Presets are defaults, so they are applied first; later values choose which.
  void apply(bool check_files) {
    const std::string algorithm = config::canonical_choice(last("algorithm"), {}, {});
    const Recipe* recipe = find_recipe(algorithm);
    if (recipe)
      if (const Preset* defaults = find_compat(last("compat"), recipe->name))
        preset(*defaults, config::compat_origin);
    if (const Preset* own = find_preset(algorithm)) preset(*own, config::algorithm_origin);
    for (const Given& each : given_) put(each.key, each.node, each.origin);
    for (std::string& each : config::expand_home(out_.config)) problem(std::move(each));
    if (check_files) adapter_as_model();
    if (!recipe) return;
    out_.config.algorithm = algorithm;
    for (const MethodDefault& each : method_defaults(recipe->name)) method_default(each);
    off_policy_defaults(algorithm);
    critic_defaults();
  }

  /// What does not divide the critic is the policy's, unless the file says otherwise.
  void critic_defaults() {
    for (const char* name : {"zero", "overlap", "order"}) {
      const std::string of_policy = cat("parallel.", name), key = cat("parallel.critic.", name);
      if (out_.origins[key] == config::default_origin)
        put(key, word(config::value_text(*config::find_field(of_policy), out_.config)),
            cat(config::default_origin, " of ", of_policy));
    }
  }

  /// Samples of older weights are corrected by the ratio of the policy to these weights (decoupled
  /// PPO, AReaL), unless the file says otherwise.
  void off_policy_defaults(const std::string& section) {
    const bool grpo = section == algorithms::GrpoConfig::name;
    const auto proximal = grpo ? out_.config.grpo.loss.proximal : out_.config.ppo.policy.proximal;
    const bool approximated = proximal != algorithms::Proximal::given;
    if (!(grpo || section == algorithms::PpoConfig::name)) return;
    if (!out_.config.async.stale() || approximated) return;
    constexpr std::pair<const char*, const char*> defaults[] = {
        {"recompute_old_logp", "true"}, {"correction", "token"}, {"correction_high", "2"}};
    for (const auto& [name, value] : defaults)
      if (const std::string key = cat(section, ".", name);
          out_.origins[key] == config::default_origin)
        put(key, word(value), cat(config::default_origin, " for async.eta above 0"));
  }

  /// The default of a method depends on whether an adapter is trained, which the values above say.
  void method_default(const MethodDefault& given) {
    std::string& origin = out_.origins[std::string(given.key)];
    if (origin != config::default_origin) return;
    const bool adapter = adapts(out_.config) && !given.with_adapter.empty();
    put(std::string(given.key), word(adapter ? given.with_adapter : given.value),
        cat(config::default_origin, " for ", given.method, adapter ? " with an adapter" : ""));
  }

  void preset(const Preset& preset, std::string_view kind) {
    for (const auto& [key, value] : preset.values)
      put(std::string(key), word(value), cat(kind, preset.name));
  }

  void put(const std::string& key, const config::YamlNode& node, const std::string& origin) {
    if (const config::Field* field = config::find_field(key)) {
      if (node.kind == config::YamlNode::Kind::null) return;
      const std::string why = config::assign(*field, node, out_.config);
      if (!why.empty()) return wrong(key, cat(key, " (", origin, "): ", why));
      out_.origins[key] = origin;
      return;
    }
    if (put_entry("data.columns", out_.config.data.columns, key, node, origin) ||
        put_entry("data.tags", out_.config.data.tags, key, node, origin))
      return;
    if (key.starts_with(config::override_prefix)) return put_override(key, node, origin);
    if (key == config::column_maps_key) return map_keys(node, origin);
    unknown(key, node, origin);
  }

  /// A map of another tool ("actor_rollout_ref: {actor: {...}}") is answered key by key.
  void unknown(const std::string& key, const config::YamlNode& node, const std::string& origin) {
    const std::string algorithm = config::canonical_choice(last("algorithm"), {}, {});
    const auto is_read = [&](const config::Field& field) {
      return algorithm.empty() || reads(algorithm, field);
    };
    if (const config::Field* only = config::only_key_called(key, is_read))
      return problem(cat("unknown key ", key, " (", origin, "); did you mean ", only->key, "?"));
    const std::string known = tools::tables::advice(key, [&](std::string_view ours) {
      const config::Field* field = config::find_field(ours);
      return field && reads(algorithm, *field);
    });
    if (const std::string typo = is_name_of_a_tool(key) ? "" : config::key_within_one_edit(key);
        !typo.empty())
      return problem(cat("unknown key ", key, " (", origin, "); did you mean ", typo, "?"));
    const std::string whole(config::section_of(key));
    if (known.empty() && config::find_field(whole))
      return wrong(whole, cat("unknown key ", key, " (", origin, "): ", whole,
                              " is one value and not a section; set all of it: ", whole, "=VALUE"));
    if (tools::tables::is_tool_section(key) && node.kind == config::YamlNode::Kind::map &&
        !node.members.empty()) {
      for (const auto& [name, value] : node.members)
        unknown(cat(key, '.', name), value,
                origin.substr(0, origin.rfind(':')) + (value.line > 0 ? cat(':', value.line) : ""));
      return;
    }
    const std::string meant = known.empty() ? config::nearest_key(key) : "";
    problem(cat("unknown key ", key, " (", origin, ")",
                !known.empty()  ? cat("; ", known)
                : meant.empty() ? "; troupe explain --reference lists all keys"
                                : cat("; did you mean ", meant, "?")));
  }

  /// One entry of a map: "data.columns.prompt". False if the key is not one of this map.
  bool put_entry(const std::string& map, std::map<std::string, std::string>& entries,
                 const std::string& key, const config::YamlNode& node, const std::string& origin) {
    if (!key.starts_with(map + ".") || key.ends_with('.') ||
        node.kind != config::YamlNode::Kind::scalar)
      return false;
    entries[key.substr(map.size() + 1)] = node.text;
    out_.origins[map] = origin;
    return true;
  }

  /// "model_overrides.rope_theta"; a map of a command line is still a text.
  void put_override(const std::string& key, const config::YamlNode& node,
                    const std::string& origin) {
    model::ModelOverrides& overrides = out_.config.model_overrides;
    const std::string name = key.substr(config::override_prefix.size());
    if (node.kind == config::YamlNode::Kind::scalar && !node.quoted) {
      if (const auto added = config::add_override(overrides, cat(name, '=', node.text)); !added)
        return wrong(key, cat(key, " (", origin, "): ", added.error().what));
    } else {
      overrides.values.set(name, json_of(node));
    }
    out_.origins["model_overrides"] = origin;
  }

  /// Column and role names as MindSpeed and LLaMA-Factory define them.
  void map_keys(const config::YamlNode& node, const std::string& origin) {
    if (const std::string why = config::apply_map_keys(node, out_.config.data); !why.empty())
      return problem(cat("data.map_keys (", origin, "): ", why));
    out_.origins["data.columns"] = out_.origins["data.tags"] = origin;
  }

  Resolved out_;
  std::string file_;  ///< the run file, "" for none
  std::vector<Given> given_;
  std::vector<std::string> problems_;
  std::set<std::string> reported_;  ///< keys whose values are wrong in themselves
  std::size_t missing_ = 0;         // how many of them are missing files
  bool unread_ = false;
};

}  // namespace

Result<Resolved> resolve(const Sources& sources) {
  Resolver resolver;
  if (!sources.file.empty()) resolver.file(sources.file);
  resolver.algorithm(sources.algorithm);
  for (const std::string& set : sources.sets) resolver.set(set);
  for (const OptionSetting& each : sources.options) resolver.option(each);
  return resolver.finish(sources.check_files);
}

std::string to_yaml(const config::RunConfig& config) {
  std::string text, section;
  const auto unused = unused_keys(config);
  for (const config::Field& field : config::fields()) {
    if (unused.contains(field.key)) continue;
    const std::string_view of = config::section_of(field.key);
    if (of != section) {
      section = of;
      if (!section.empty()) text += cat(section, ":\n");
    }
    const std::string name = section.empty() ? field.key : field.key.substr(section.size() + 1);
    text += cat(section.empty() ? "" : "  ", name, ": ", config::value_text(field, config), "\n");
  }
  return text;
}

Result<config::RunConfig> config_of(std::string_view yaml, const std::string& where) {
  Resolver resolver;
  resolver.text(yaml, where);
  auto resolved = resolver.finish(false);
  RETURN_IF_ERROR(resolved);
  return std::move(resolved->config);
}

}  // namespace troupe::launch::recipes
