#include "launch/tools/preprocess/command_line.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <memory>

#include "engine/base/text/text.h"
#include "launch/commands/arguments.h"
#include "launch/commands/script_flags.h"
#include "launch/config/paths.h"
#include "launch/tools/preprocess/handlers.h"
#include "launch/tools/preprocess/preprocess.h"
#include "launch/tools/preprocess/yaml_words.h"

namespace troupe::launch::tools::preprocess {
namespace {

// Expands ~ in `--input=~/x`, which shells leave as it is.
CLI::Option* home_path(CLI::Option* option) {
  return option->transform([name = option->get_name()](const std::string& given) {
    auto expanded = config::expand_home(name, given);
    return expanded ? std::move(*expanded)
                    : throw CLI::ValidationError(name, expanded.error().what);
  });
}

std::vector<std::string> handler_names() {
  std::vector<std::string> out{std::string(text_handler)};
  for (const Handler& handler : packed_handlers()) out.emplace_back(handler.name);
  return out;
}

void add_tokens(CLI::App& command, PreprocessOptions& options) {
  home_path(command.add_option("--tokenizer-name-or-path", options.tokenizer,
                               "folder with a tokenizer, or a tokenizer.json or .model file"));
  home_path(command.add_option("--tokenizer-model", options.tokenizer_model,
                               "the same for a file, where there is no folder"));
  command
      .add_option("--tokenizer-type", options.tokenizer_type,
                  "PretrainedFromHF, HuggingFaceTokenizer or Llama2Tokenizer: names of a tokenizer "
                  "that is read from its folder or file")
      ->check(CLI::IsMember({"PretrainedFromHF", "HuggingFaceTokenizer", "Llama2Tokenizer"}));
  command
      .add_option("--handler-name", options.handler,
                  "GeneralPretrainHandler: the columns of --json-keys are text; or a handler of "
                  "packed files (docs/pretraining.md)")
      ->check(CLI::IsMember(handler_names()));
  command
      .add_option("--json-keys,--json-key", options.json_keys,
                  "columns to tokenize; each becomes a dataset of its own")
      ->capture_default_str();
  command
      .add_option(
          "--sample-by", options.sample_by,
          "document of a text file: line (as MindSpeed), paragraph, document, separator, or "
          "auto: separator where the file has lines that are the separator, else document "
          "(a line for packed files)")
      ->check(CLI::IsMember({"auto", "line", "paragraph", "document", "separator"}))
      ->capture_default_str();
  command.add_option("--separator", options.separator, "line that ends a document of a text file")
      ->capture_default_str();
  command.add_flag("--append-eod", options.append_eod,
                   "append the tokenizer's end token to each document");
  command.add_flag("!--no-special-tokens", options.special_tokens,
                   "leave out the tokens of the post-processor, such as BOS, which Megatron adds");
  command
      .add_option("--token-type", options.token_type,
                  "auto, uint16 or int32: stored width of a token; auto: uint16 below 65,500 "
                  "entries of the vocabulary, as Megatron")
      ->check(CLI::IsMember({"auto", "uint16", "int32"}))
      ->capture_default_str();
}

void add_packed(CLI::App& command, PreprocessOptions& options) {
  CLI::Option* type =
      command.add_option("--prompt-type", options.prompt_type,
                         "packed files: chat template, a prompt type of MindSpeed or a Jinja "
                         "file; default: the tokenizer's own");
  command
      .add_option("--prompt-type-path", options.prompt_type_path,
                  "packed files: a template file of MindSpeed (templates.json), which has the "
                  "prompt type")
      ->needs(type);
  command.add_option("--map-keys", options.map_keys,
                     "packed files: JSON object with the names of the columns, such as "
                     "{\"prompt\": \"problem\", \"query\": \"\", \"response\": \"answer\"}");
  command.add_option("--dataset-additional-keys", options.additional_keys,
                     "packed files of prompts: columns to tokenize as well; labels: the answer");
  command
      .add_option("--seq-length", options.sequence_length,
                  "packed files: leave out rows of this number of tokens or more; 0: none")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--placeholder-token", options.placeholder,
                  "process rewards: the token behind each step")
      ->capture_default_str();
  command.add_option("--reward-tokens", options.reward_tokens,
                     "process rewards: the tokens of the values, such as + -");
}

void add_work(CLI::App& command, PreprocessOptions& options) {
  command.add_option("--workers", options.workers, "threads that tokenize; the output is the same")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      .add_option("--n-subs", options.subs,
                  "as --workers; the larger of both numbers of threads is used")
      ->check(CLI::Range(1, 1024));
  command.add_option("--max-samples", options.max_samples, "rows to read at most; 0: all")
      ->check(CLI::NonNegativeNumber);
  home_path(command.add_option("--cache-dir", options.cache_dir,
                               "folder of the progress file; default: that of the output"));
  command
      .add_option("--log-interval", options.log_interval,
                  "without a terminal: rows between lines of progress; 0: none")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--merge-group-keys", options.merge_group_keys,
                     "instead of tokenizing: merge the token files of the folder --input whose "
                     "names contain the key into PREFIX_KEY.bin and .idx");
}

void add_options(CLI::App& command, PreprocessOptions& options) {
  command.add_option("--input", options.input,
                     "files, folders or patterns: jsonl, json, csv, txt, parquet, arrow");
  home_path(command.add_option("--output-prefix", options.output_prefix,
                               "beginning of the names of the output files"));
  add_tokens(command, options);
  add_packed(command, options);
  add_work(command, options);
  commands::add_script_flags(command);
}

// Parses the keys of a YAML file as the options of the same names.
void parse_file(const std::string& path, PreprocessOptions& options) {
  const auto words = preprocess_words(path);
  if (!words) throw commands::ArgumentProblem(words.error().what);
  CLI::App command("the keys of the file", "preprocess");
  add_options(command, options);
  auto reversed = *words;
  std::reverse(reversed.begin(), reversed.end());
  try {
    command.parse(reversed);
  } catch (const CLI::ParseError& error) {
    throw commands::ArgumentProblem(
        cat(path, ": ", commands::parse_problem(command, *words, error)));
  }
}

}  // namespace

void add_preprocess(CLI::App& app, std::function<int()>& action) {
  auto options = std::make_shared<PreprocessOptions>();
  auto file = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "preprocess", "Tokenize data into Megatron's token files, PREFIX_KEY_document.bin and .idx");
  CLI::Option* given = command->add_option(
      "file", *file, "YAML file with the options as keys, such as output_prefix; instead of them");
  add_options(*command, *options);
  command->footer(
      "Example:\n  troupe preprocess --input enwiki.jsonl --output-prefix data/enwiki "
      "--tokenizer-name-or-path DIR --append-eod --workers 8\n"
      "Run the same command again to continue an interrupted one. docs/pretraining.md describes "
      "the files.");
  command->callback([options, file, command, given, &action] {
    if (!file->empty()) {
      for (const CLI::Option* option : command->get_options())
        if (option != given && option->count() > 0 && option->get_group() == "Options" &&
            option->get_lnames() != std::vector<std::string>{"log-level"} &&
            option->get_lnames() != std::vector<std::string>{"quiet"})
          throw commands::ArgumentProblem(cat("preprocess: ", option->get_name(),
                                              " beside a YAML file; write it into the file"));
      parse_file(*file, *options);
    }
    if (options->tokenizer.empty()) options->tokenizer = options->tokenizer_model;
    action = [options] { return preprocess(*options); };
  });
}

}  // namespace troupe::launch::tools::preprocess
