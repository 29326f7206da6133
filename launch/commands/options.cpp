#include "launch/commands/options.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <filesystem>

#include "engine/base/json/json.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/generate/sampling_params_json.h"
#include "launch/commands/arguments.h"
#include "launch/config/paths.h"
#include "launch/recipes/recipes.h"

namespace troupe::launch::commands {

namespace {

/// Takes a sampling setting (engine/generate/sampling_params_json.h), or refuses it by its option.
void take_setting(GenerateOptions& options, const std::string& option, const char* key,
                  Json value) {
  engine::generate::SamplingParams scratch;
  if (auto read = engine::generate::read_sampling_param(key, value, scratch); !read)
    throw ArgumentProblem(cat(option, ": ", read.error().what));
  options.settings.set(key, std::move(value));
}

/// An option for one sampling setting. `option`: "--max-new-tokens,--max-tokens".
template <class Value>
CLI::Option* add_setting(CLI::App& command, const std::string& option, const char* key,
                         GenerateOptions& options, const std::string& help) {
  const std::string first = option.substr(0, option.find(','));
  return command.add_option_function<Value>(
      option,
      [key, first, &options](const Value& given) {
        take_setting(options, first, key, Json(given));
      },
      help);
}

/// An option that may be given several times. `json_of`: a value for the list.
template <class Value>
void add_list(CLI::App& command, const std::string& option, const char* key,
              GenerateOptions& options, const std::string& help,
              Json (*json_of)(const Value&, const std::string& option)) {
  const auto take = [key, option, json_of, &options](const std::vector<Value>& given) {
    Json::Array list;
    for (const Value& each : given) list.push_back(json_of(each, option));
    take_setting(options, option, key, std::move(list));
  };
  command
      .add_option_function<std::vector<Value>>(option, take,
                                               cat(help, "; may be given several times"))
      ->allow_extra_args(false);
}

template <class Value>
Json as_it_is(const Value& value, const std::string&) {
  return Json(value);
}

/// A list in JSON; another text stands for itself.
Json text_or_list(const std::string& text, const std::string& option) {
  if (!text.starts_with('[')) return Json(text);
  auto json = parse_json(text, option);
  if (!json) throw ArgumentProblem(json.error().what);
  return std::move(*json);
}

/// The option of one field of SamplingParams.
template <class T>
void add_field(CLI::App& command, const std::string& option, const char* key,
               GenerateOptions& options, const std::string& help) {
  if constexpr (std::is_same_v<T, bool>)
    command.add_flag_callback(
        option, [key, &options] { options.settings.set(key, true); }, help);
  else if constexpr (std::is_integral_v<T>)
    add_setting<std::int64_t>(command, option, key, options, help);
  else if constexpr (std::is_floating_point_v<T>)
    add_setting<double>(command, option, key, options, help);
  else if constexpr (std::is_same_v<T, std::vector<std::string>>)
    add_list<std::string>(command, option, key, options, help, as_it_is);
  else if constexpr (std::is_same_v<T, std::vector<std::int32_t>>)
    add_list<std::int64_t>(command, option, key, options, help, as_it_is);
  else
    add_list<std::string>(command, option, key, options, help, text_or_list);
}

void add_sampling_params(CLI::App& command, GenerateOptions& o) {
  command.add_flag_callback(
      "--greedy", [&o] { o.settings.set("do_sample", false); },
      "always take the most likely token; overrides generation_config.json");
  const engine::generate::SamplingParams params;
  engine::generate::SamplingParams::each_field(params, [&](const char* name, const auto& value,
                                                           const auto&... rest) {
    std::string option = cat("--", name), help = std::get<sizeof...(rest) - 1>(std::tie(rest...));
    std::ranges::replace(option, '_', '-');
    if (option == "--max-new-tokens") {
      option += ",--max-tokens";
      help += "; 256 if generation_config.json has none";
    }
    add_field<std::remove_cvref_t<decltype(value)>>(command, option, name, o, help);
  });
  add_setting<std::int64_t>(command, "--seed", "seed", o, "random seed for sampling");
  add_list<std::int64_t>(command, "--stop-token", "stop_token_ids", o, "stop token id", as_it_is);
}

void add_beam_search(CLI::App& command, GenerateOptions& o) {
  add_setting<std::int64_t>(
      command, "--num-beams", "num_beams", o,
      "number of beams; 1: no beam search; with do_sample or a temperature the "
      "continuations are drawn");
  add_setting<double>(command, "--length-penalty", "length_penalty", o,
                      "beam search: above 0 favors longer outputs");
  const auto stopping = [&o](const std::string& value) {
    o.settings.set("early_stopping", value == "never" ? Json(value) : Json(value == "true"));
  };
  command
      .add_option_function<std::string>("--early-stopping", stopping,
                                        "beam search: true, false or never")
      ->check(CLI::IsMember({"true", "false", "never"}));
}

}  // namespace

namespace {

/// True for what can stand as a run file without --config: a file, or a name that looks like one.
bool is_run_file(const std::string& word) {
  std::error_code ignored;
  return word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json") ||
         std::filesystem::is_regular_file(word, ignored);
}

void add_run_file(CLI::App& command, recipes::Sources& sources) {
  const auto take_file = [&sources](std::vector<std::string> files) {
    if (!sources.file.empty()) files.insert(files.begin(), sources.file);
    if (files.size() > 1)
      throw CLI::ValidationError(
          "--config", cat("is given ", files.size(), " times (", join(files, ", "),
                          "), and one file is read; override its values with --set key=value"));
    sources.file = files.front();
  };
  command
      .add_option_function<std::vector<std::string>>(
          "--config", take_file,
          "YAML or JSON file with the keys of docs/configuration.md; -: standard input")
      ->allow_extra_args(false);
  command.add_option_function<std::vector<std::string>>(
      "file",
      [take_file](const std::vector<std::string>& files) {
        for (const std::string& each : files)
          if (!is_run_file(each)) throw CLI::ExtrasError({each});  // parse_problem() says more
        take_file(files);
      },
      "the run file, as --config");
}

}  // namespace

CLI::Option* path_option(CLI::Option* option) {
  return option->transform([name = option->get_name()](const std::string& given) {
    auto expanded = config::expand_home(name, given);
    return expanded ? std::move(*expanded)
                    : throw CLI::ValidationError(name, expanded.error().what);
  });
}

void add_sources(CLI::App& command, recipes::Sources& sources) {
  command.add_option("--algorithm", sources.algorithm,
                     cat("one of ", join(recipes::algorithm_names(), ", ")));
  add_run_file(command, sources);
  const auto setting = [&](const char* option, const char* key, const char* help) {
    const auto give = [&sources, option, key](const std::string& value) {
      sources.options.push_back({option, key, value});
    };
    command.add_option_function<std::string>(option, give, help);
  };
  setting("--model", "model", "Hugging Face model directory to start from");
  const auto data = [&sources](const std::vector<std::string>& paths) {
    sources.options.push_back(
        {"--data", "data.path",
         paths.size() == 1 ? paths[0] : Json(Json::Array(paths.begin(), paths.end())).dump()});
  };
  command.add_option_function<std::vector<std::string>>("--data", data,
                                                        "files or folders of rows (data.path)");
  setting("--output", "output", "directory of the run");
  setting("--resume", "resume", "auto, never, or a checkpoint directory");
  setting("--steps", "train.steps", "number of optimizer steps");
  command
      .add_option(
          "--set", sources.sets,
          "key=value; overrides the file; may be given several times; --set may be left out")
      ->take_all()
      ->allow_extra_args(false);
  add_profile(command, sources);
}

void add_model(CLI::App& command, model::ModelOptions& options) {
  path_option(
      command.add_option("--model", options.model,
                         "Hugging Face model directory, or a LoRA adapter's that names its base"))
      ->required();
  path_option(command.add_option("--adapter", options.adapter,
                                 "directory of a PEFT adapter for the model"));
  add_dtype(command, options.dtype);
  command
      .add_option("--threads", options.threads,
                  "number of threads; 0: all available cores; does not change results")
      ->check(CLI::Range(0, 1024));
}

void add_dtype(CLI::App& command, engine::ops::Precision& dtype) {
  const auto take = [&dtype](const std::string& given) {
    const config::YamlNode word{.kind = config::YamlNode::Kind::scalar, .text = given};
    if (const std::string why = config::read_value(dtype, word); !why.empty())
      throw ArgumentProblem(cat("--dtype ", why));
  };
  command
      .add_option_function<std::string>("--dtype", take,
                                        "f32 or bf16: data type of matrix multiplications")
      ->default_str(std::string(name_of(dtype)));
}

void add_overrides(CLI::App& command, model::ModelOverrides& overrides) {
  const auto take = [&overrides](const std::vector<std::string>& given) {
    for (const std::string& each : given)
      if (const auto added = config::add_override(overrides, each); !added)
        throw ArgumentProblem(cat("--model-overrides: ", added.error().what));
  };
  command
      .add_option_function<std::vector<std::string>>(
          "--model-overrides", take,
          "KEY=VALUE in place of a value of config.json, such as rope_theta=1000000; may be given "
          "several times, also as model_overrides.KEY=VALUE alone")
      ->allow_extra_args(false);
}

void add_template(CLI::App& command, GenerateOptions& options) {
  command.add_option("--template", options.chat_template,
                     "chat template instead of the model's own: a Jinja file, or the name of a "
                     "MindSpeed prompt type such as chatml");
}

void add_server(CLI::App& command, ChatOptions& options) {
  CLI::Option* model = command.get_option("--model")->required(false);
  model->description(model->get_description() + "; with --url: the model's name at the server");
  CLI::Option* url = command.add_option(
      "--url", options.url,
      "chat with the model of a server that has the OpenAI API, such as http://127.0.0.1:8000");
  path_option(command.add_option("--api-key-file", options.api_key_file,
                                 "file with the key of the server, mode 0600"))
      ->needs(url);
  command
      .add_flag("--send-key-unencrypted", options.send_key_unencrypted,
                "send the key to another host by http, where everybody on the way can read it")
      ->needs(url);
  for (const char* local :
       {"--adapter", "--dtype", "--threads", "--template", "--generation-config", "--weights"})
    url->excludes(command.get_option(local));
  command.parse_complete_callback([&options] {
    if (options.url.empty() && options.model.model.empty())
      throw CLI::RequiredError("--model or --url");
  });
}

/// The ranks of mpirun that share the model.
static void add_group(CLI::App& command, GenerateOptions& o) {
  command
      .add_option("--tp", o.grid.tp,
                  "ranks of mpirun that share every matrix: mpirun -n 4 troupe generate --tp 2 "
                  "--pp 2 ...")
      ->check(CLI::Range(1, 1024));
  command.add_option("--pp", o.grid.pp, "stages of layers, each on other ranks of mpirun")
      ->check(CLI::Range(1, 1024));
  command
      .add_option(
          "--timeout", o.timeout,
          "seconds that a rank of mpirun waits for another; then the command ends and names "
          "the rank that did not come")
      ->check(CLI::Range(5, 604800))
      ->capture_default_str();
}

void add_sampling(CLI::App& command, GenerateOptions& o) {
  add_group(command, o);
  command.add_option("--generation-config", o.generation_config,
                     "settings file used instead of the model's generation_config.json, or "
                     "none; options take precedence");
  command
      .add_option(
          "--weights", o.weights,
          "full, or int8: quantize weights to 8 bits for speed; log-probabilities are those "
          "of the quantized model")
      ->check(CLI::IsMember({"full", "int8"}))
      ->capture_default_str();
  command
      .add_option("--lookup", o.lookup,
                  "draft tokens per step by prompt lookup, for repetitive text; does not change "
                  "results; 0: none")
      ->check(CLI::Range(0, 256));
  path_option(command.add_option(
      "--draft", o.draft,
      "folder of a draft model with the same tokenizer; does not change results"));
  command.add_option("--draft-tokens", o.draft_tokens, "tokens per step of the draft model")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  add_sampling_params(command, o);
  add_beam_search(command, o);
  add_setting<std::int64_t>(command, "--top-logprobs", "top_logprobs", o,
                            "number of most likely tokens to report at each position");
}

void add_task(CLI::App& command, GenerateOptions& options) {
  const auto names = names_of(Task());
  command
      .add_option_function<std::string>(
          "--task",
          [names, &options](const std::string& given) {
            options.task = static_cast<Task>(std::ranges::find(names, given) - names.begin());
          },
          "what MindSpeed's inference.py calls so: sets do_sample and num_beams (2 beams, or "
          "--num-beams); chat: a dialogue, as `troupe chat`")
      ->check(CLI::IsMember(std::vector<std::string>(names.begin(), names.end())))
      ->excludes("--greedy");
}

void add_logging(CLI::App& command) {
  CLI::Option* quiet = command.add_flag_callback(
      "--quiet", [] { set_log_level(LogLevel::warning); },
      "show warnings and errors only, and no progress");
  const auto names = names_of(LogLevel());
  command
      .add_option_function<std::string>(
          "--log-level",
          [names](const std::string& given) {
            const auto at = std::ranges::find(names, given) - names.begin();
            set_log_level(static_cast<LogLevel>(at));  // checked below
          },
          "least severe level of the log lines that are shown")
      ->check(CLI::IsMember(std::vector<std::string>(names.begin(), names.end())))
      ->excludes(quiet);
}

void add_profile(CLI::App& command, recipes::Sources& sources) {
  const auto set = [&sources](const std::string& key, const std::string& value) {
    sources.sets.push_back(cat("profile.", key, "=", value));
  };
  const auto flag = [&](const char* option, const char* key, const char* help) {
    command.add_flag_callback(
        option, [set, key] { set(key, "true"); }, help);
  };
  const auto value = [&](const char* option, const char* key, const char* help) {
    return command.add_option_function<std::string>(
        option, [set, key](const std::string& given) { set(key, given); }, help);
  };
  flag("--profile", "enabled",
       "write a trace and a table of operators (profile.*: docs/operations.md)");
  value("--profile-step-start", "step_start", "first profiled step");
  value("--profile-step-end", "step_end", "end of the profiled steps (exclusive)");
  command.add_option_function<std::vector<std::string>>(
      "--profile-ranks",
      [set](const std::vector<std::string>& ranks) {
        set("ranks", cat("[", join(ranks, ", "), "]"));
      },
      "profiled ranks of each group; -1: all");
  value("--profile-level", "level",
        "level0: operators; level1: also communication; level2: also hardware counters");
  flag("--profile-with-cpu", "with_cpu", "record the number of busy cores");
  flag("--profile-with-stack", "with_stack", "record the enclosing phases of each operator");
  flag("--profile-with-memory", "with_memory", "record tensor memory over time");
  flag("--profile-record-shapes", "record_shapes", "record the operand shapes of each operator");
  value("--profile-save-path", "save_path", "output folder; default: profile in the run's output");
}

}  // namespace troupe::launch::commands
