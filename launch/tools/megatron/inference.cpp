#include "launch/tools/megatron/inference.h"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <optional>

#include "engine/base/json/fields.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "launch/commands/model_output.h"
#include "launch/commands/prompt_engine.h"
#include "launch/tools/convert/convert.h"
#include "launch/tools/megatron/adapter_folder.h"
#include "launch/tools/megatron/architecture.h"
#include "launch/tools/megatron/load_folder.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch::tools::megatron {
namespace {

namespace fs = std::filesystem;

constexpr const char* prompt = "how are you?";  // of inference.py

Result<Json> number_of(const CommandLine& line, const char* flag, const char* otherwise) {
  const std::string text = line.value(flag, otherwise);
  auto number = parse_json(text, flag);
  if (!number || !number->is_number())
    return fail(Errc::usage, cat("--", flag, ' ', quote(text), ": expected a number"));
  return number;
}

Result<> add_number(const CommandLine& line, const char* flag, const char* key,
                    const char* otherwise, Json& settings) {
  const auto value = number_of(line, flag, otherwise);
  RETURN_IF_ERROR(value);
  settings.set(key, *value);
  return {};
}

Result<std::vector<commands::Task>> tasks_of(const CommandLine& line) {
  const auto names = names_of(commands::Task());
  std::vector<commands::Task> out;
  const Given* given = line.find("task");
  std::vector<std::string> words(names.begin(), names.end());
  if (given && !given->values.empty()) words = given->values;
  for (const std::string& word : words) {
    const auto at = std::ranges::find(names, word);
    if (at == names.end())
      return fail(Errc::usage,
                  cat("--task ", quote(word), ": expected ",
                      join(std::vector<std::string>(names.begin(), names.end()), ", ")));
    out.push_back(static_cast<commands::Task>(at - names.begin()));
  }
  return out;
}

/// How the task chat joins turns: a template, or, as inference.py does without one, nothing.
Result<std::string> template_of(const CommandLine& line) {
  const std::string type = line.value("prompt-type"), file = line.value("prompt-type-path");
  if (line.find("hf-chat-template") && !type.empty())
    return fail(
        Errc::usage,
        "--hf-chat-template and --prompt-type: expected one of both, as each is a template");
  if (line.find("hf-chat-template")) return std::string();
  if (type.empty()) return std::string("empty");
  return file.empty() ? type : cat(file, '#', type);
}

/// A folder that is removed with all its content.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_((fs::temp_directory_path() / "troupe-inference-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr)
      throw Failure({Errc::io, cat(path_, ": cannot create a temporary folder: ",
                                   std::strerror(errno), "; set TMPDIR to a folder with space")});
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The Hugging Face folder of --load; of a checkpoint of Megatron, in `made`. `values`: what counts
/// in place of its config.json.
Result<std::string> model_folder(const CommandLine& line, std::optional<TemporaryFolder>& made,
                                 Replaced& values) {
  const std::string load = line.value("load"), tokenizer = tokenizer_folder(line);
  if (load.empty()) return fail(Errc::usage, "--load is missing: the folder of the model");
  const auto found = find_load(load);
  RETURN_IF_ERROR(found);
  if (!found->megatron) {
    RETURN_IF_ERROR(check_tokenizers(found->folder, tokenizer));
    auto checked = check_architecture(line, found->folder + "/config.json");
    RETURN_IF_ERROR(checked);
    values = std::move(*checked);
    return found->folder;
  }
  if (!is_there(tokenizer + "/config.json"))
    return fail(Errc::not_found, cat("--tokenizer-name-or-path ", quote(tokenizer),
                                     ": expected a folder with config.json, as --load is a "
                                     "checkpoint of Megatron"));
  auto checked = check_architecture(line, tokenizer + "/config.json");
  RETURN_IF_ERROR(checked);
  values = std::move(*checked);
  made.emplace();
  convert::ConvertOptions options{.load_type = "mg", .save_type = "hf"};
  options.load_dir = load;
  options.save_dir = tokenizer;
  options.hf_folder = made->path() + "/model";
  return convert::convert(options);
}

/// The ids of --add-eos-token.
Result<> add_end_tokens(const CommandLine& line, const std::string& folder, Json& settings) {
  const Given* given = line.find("add-eos-token");
  if (!given) return {};
  const auto tokenizer = engine::tokenizer::Tokenizer::load(folder);
  RETURN_IF_ERROR(tokenizer);
  Json::Array ids;
  for (const std::string& token : given->values) {
    const auto id = tokenizer->token_to_id(token);
    if (!id)
      return fail(Errc::usage, cat("--add-eos-token ", quote(token), ": no token of ", folder));
    ids.emplace_back(std::int64_t{*id});
  }
  settings.set("stop_token_ids", std::move(ids));
  return {};
}

/// The settings of one task.
Json settings_of(const InferenceRun& run, commands::Task task) {
  Json out = run.options.settings;
  const auto add = [&out](const Json& more) {
    for (const auto& [key, value] : more.object()) out.set(key, value);
  };
  if (task == commands::Task::beam_search || task == commands::Task::beam_search_with_sampling)
    add(run.beams);
  if (task != commands::Task::greedy && task != commands::Task::beam_search) add(run.sampling);
  value_or_throw(commands::set_task(task, out));
  return out;
}

/// Answers the prompt as each task but chat does.
void answer(const InferenceRun& run) {
  std::optional<engine::tokenizer::StreamDecoder> decoder;
  commands::ModelOutput output;
  commands::PromptEngine engine(run.options);
  const auto print = [&](const engine::generate::TokenEvent& event) {
    output.print(decoder->push(event.token));
  };
  const auto ids =
      value_or_throw(engine.model().tokens_of(Json::Object{{"prompt", prompt}}, "prompt"));
  for (const commands::Task task : run.tasks) {
    if (task == commands::Task::chat) continue;
    auto sampling = engine.prompts().settings();
    value_or_throw(commands::read_settings(settings_of(run, task), sampling));
    const auto began = std::chrono::steady_clock::now();
    std::cout << "\n=============== " << name_of(task) << " ===============\n\nYou:\n"
              << prompt << "\n\nMindSpeed-LLM:\n"
              << std::flush;
    decoder.emplace(*value_or_throw(engine.model().tokenizer()), true);
    const auto found = value_or_throw(engine.generate(ids, sampling, 0, print));
    output.print_line(sampling.beams.count > 1 ? found.front().text : decoder->finish());
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - began;
    std::cout << "\nElapsed: " << to_text(elapsed.count(), 2) << "s\n" << std::flush;
  }
}

}  // namespace

Result<InferenceRun> inference_run(const CommandLine& line) {
  InferenceRun run;
  auto tasks = tasks_of(line);
  RETURN_IF_ERROR(tasks);
  run.tasks = std::move(*tasks);
  auto form = template_of(line);
  RETURN_IF_ERROR(form);
  run.options.chat_template = std::move(*form);
  run.options.bare_commands = true;
  run.options.generation_config = "none";  // inference.py reads none
  if (line.find("bf16")) run.options.model.dtype = engine::ops::Precision::bf16;
  RETURN_IF_ERROR(
      add_number(line, "max-new-tokens", "max_new_tokens", "128", run.options.settings));
  if (line.find("seed"))
    RETURN_IF_ERROR(add_number(line, "seed", "seed", "", run.options.settings));
  RETURN_IF_ERROR(add_number(line, "top-k", "top_k", "50", run.sampling));
  RETURN_IF_ERROR(add_number(line, "top-p", "top_p", "0.95", run.sampling));
  RETURN_IF_ERROR(add_number(line, "temperature", "temperature", "0.7", run.sampling));
  if (line.find("num-beams"))
    RETURN_IF_ERROR(add_number(line, "num-beams", "num_beams", "", run.beams));
  const auto turns = number_of(line, "history-turns", "3");
  RETURN_IF_ERROR(turns);
  if (!turns->is_integer() || turns->integer() < 1 || turns->integer() > 1 << 20)
    return fail(Errc::usage, cat("--history-turns ", line.value("history-turns"),
                                 ": expected a whole number, at least 1"));
  run.options.history_turns = static_cast<int>(turns->integer());
  return run;
}

int inference(const std::vector<std::string>& words) {
  const auto line = value_or_throw(read_command_line(words));
  if (transports::mpi::under_mpirun() && transports::mpi::mpirun_size() > 1)
    throw Failure(
        {Errc::usage, cat("inference: expected one rank, found ", transports::mpi::mpirun_size(),
                          "; one process reads a checkpoint of any division")});
  if (!line.overrides.empty())
    throw Failure(
        {Errc::usage, cat(quote(line.overrides[0]), ": inference has no settings of a run")});
  InferenceRun run = value_or_throw(inference_run(line));
  std::optional<TemporaryFolder> made;
  Replaced values;
  run.options.model.model = value_or_throw(model_folder(line, made, values));
  if (line.find("lora-load")) {
    if (!made) made.emplace();
    run.options.model.adapter =
        value_or_throw(adapter_folder(line, run.options.model.model, made->path() + "/adapter"));
  }
  run.options.model.overrides.values = values.overrides;
  for (const std::string& note : values.notes) log_info(note);
  value_or_throw(add_end_tokens(line, run.options.model.model, run.options.settings));
  const auto talks = [](commands::Task task) { return task == commands::Task::chat; };
  if (!std::ranges::all_of(run.tasks, talks)) answer(run);
  if (!std::ranges::any_of(run.tasks, talks)) return 0;
  commands::ChatOptions dialogue = run.options;
  dialogue.settings = settings_of(run, commands::Task::chat);
  return commands::chat(dialogue);
}

}  // namespace troupe::launch::tools::megatron
