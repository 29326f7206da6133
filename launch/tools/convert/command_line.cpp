#include "launch/tools/convert/command_line.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <iostream>
#include <memory>

#include "engine/base/text/text.h"
#include "launch/commands/arguments.h"
#include "launch/commands/options.h"
#include "launch/commands/script_flags.h"
#include "launch/config/paths.h"
#include "launch/tools/convert/convert.h"
#include "launch/tools/convert/from_pickle.h"

namespace troupe::launch::tools::convert {
namespace {

struct ConvertWords {
  FromPickleOptions pickle;
  model::ModelOverrides overrides;
  ConvertOptions options;
  std::vector<std::string> layer_list;  // words that may have spaces between them
  std::string model_type, tokenizer, config_folder;
};

// Expands ~ in `--save-dir=~/x`, which shells leave as it is.
CLI::Option* folder_option(CLI::App& command, const std::string& name, std::string& value,
                           const std::string& help) {
  return command.add_option(name, value, help)->transform([name](const std::string& given) {
    auto expanded = config::expand_home(name, given);
    return expanded ? std::move(*expanded)
                    : throw CLI::ValidationError(name, expanded.error().what);
  });
}

void add_places(CLI::App& command, ConvertWords& words) {
  folder_option(command, "--from-pickle", words.pickle.folder,
                "model folder whose pytorch_model.bin is rewritten as safetensors; --save-dir: a "
                "folder for the result, by default the same");
  folder_option(command, "--load-dir", words.options.load_dir, "folder to read");
  folder_option(command, "--save-dir", words.options.save_dir,
                "folder to write; to hf: the original folder, whose mg2hf/ gets the result");
  command
      .add_option("--load-model-type", words.options.load_type,
                  "hf: a Hugging Face folder, mg: a checkpoint of Megatron")
      ->check(CLI::IsMember({"hf", "mg"}))
      ->capture_default_str();
  command.add_option("--save-model-type", words.options.save_type, "hf or mg")
      ->check(CLI::IsMember({"hf", "mg"}))
      ->capture_default_str();
  command
      .add_option("--model-type-hf", words.options.model_type_hf,
                  "the family, as the converters of MindSpeed call it; config.json decides. qwen2, "
                  "qwen25, qwen3 and llama3 imply --use-mcore-models")
      ->capture_default_str();
  command.add_option("--model-type", words.model_type, "GPT")->check(CLI::IsMember({"GPT"}));
  folder_option(command, "--hf-cfg-dir", words.config_folder,
                "to hf: folder of the original config.json, which leaves --save-dir for the "
                "result itself");
  folder_option(command, "--tokenizer-model", words.tokenizer,
                "not read: the tokenizer lies in the Hugging Face folder");
}

void add_division(CLI::App& command, ConvertWords& words) {
  ConvertOptions& options = words.options;
  command.add_option("--target-tensor-parallel-size", options.tensor, "tensor ranks of the result")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command
      .add_option("--target-pipeline-parallel-size", options.layers.pipeline,
                  "pipeline ranks of the result")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--num-layer-list", words.layer_list,
                     "layers of each pipeline rank, such as 11,13,19,21; default: equal shares, "
                     "the first ranks with one layer more where they do not divide");
  command
      .add_option("--num-layers-per-virtual-pipeline-stage", options.layers.layers_per_virtual,
                  "layers of each virtual pipeline rank; default: no virtual ranks")
      ->check(CLI::Range(1, 10000));
  command.add_option("--noop-layers", options.empty_places,
                     "places of empty layers among all layers, such as 23,47");
  command
      .add_option("--make-vocab-size-divisible-by", options.vocabulary_multiple,
                  "pad the vocabulary to a multiple of this number times the tensor ranks")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
}

void add_adapter(CLI::App& command, ConvertWords& words) {
  auto& adapter = words.options.adapter;
  CLI::Option* load = folder_option(command, "--lora-load", adapter.folder,
                                    "checkpoint of Megatron with a LoRA adapter of --load-dir, "
                                    "divided in the same way, which is merged");
  command.add_option("--lora-r", adapter.rank, "its rank, which is checked")
      ->check(CLI::Range(1, 1 << 20));
  load->needs(
      command.add_option("--lora-alpha", adapter.alpha, "its alpha: the scale is alpha / rank"));
  command.add_option(
      "--lora-target-modules", adapter.targets,
      "its modules, which are checked: linear_qkv linear_proj linear_fc1 linear_fc2");
  command.add_flag("--save-lora-to-hf", words.options.lora_to_hf,
                   "to hf: write the adapter of --lora-load, or of --load-dir, as PEFT's folder, "
                   "and merge nothing");
}

void add_form(CLI::App& command, ConvertWords& words) {
  ConvertOptions& options = words.options;
  command.add_flag("--use-mcore-models", options.use_mcore,
                   "write the names of Megatron core instead of the legacy ones");
  command.add_flag("--save-to-legacy", options.save_to_legacy,
                   "write the legacy names, whatever --use-mcore-models says");
  command.add_flag("--load-from-legacy", options.load_from_legacy,
                   "check that the checkpoint has the legacy names; they are recognized without");
  command
      .add_option("--params-dtype", options.params_dtype,
                  "fp32, fp16 or bf16: type of the result; default: as stored")
      ->check(CLI::IsMember({"fp32", "fp16", "bf16"}));
  command.add_flag("--add-qkv-bias", options.add_qkv_bias,
                   "check that queries, keys and values have biases, which config.json decides");
  commands::add_overrides(command, words.overrides);
  command.add_flag("--add-dense-bias", options.add_dense_bias,
                   "check that the attention's output has a bias");
  command.add_flag("--post-norm", options.post_norm,
                   "check that there are norms behind attention and MLP");
  command.add_option("--num-layers", options.num_layers, "check the number of layers")
      ->check(CLI::Range(1, 100000));
  command.add_flag("--orm", options.orm, "a reward model: score head in place of the output layer");
}

int run_convert(ConvertWords& words) {
  if (!words.pickle.folder.empty()) {
    words.pickle.save_dir = words.options.save_dir;
    value_or_throw(convert_pickles(words.pickle));
    std::cout << (words.pickle.save_dir.empty() ? words.pickle.folder : words.pickle.save_dir)
              << "\n";
    return 0;
  }
  words.options.overrides = words.overrides.values;
  words.options.layer_list = join(words.layer_list, " ");
  if (!words.config_folder.empty() && words.options.save_type == "hf") {
    words.options.hf_folder = words.options.save_dir;
    words.options.save_dir = words.config_folder;
  }
  std::cout << value_or_throw(convert(words.options)) << "\n";
  return 0;
}

}  // namespace

void add_convert(CLI::App& app, std::function<int()>& action) {
  auto words = std::make_shared<ConvertWords>();
  CLI::App* command = app.add_subcommand(
      "convert",
      "Convert weights between Hugging Face folders, Megatron's checkpoints and pickles");
  add_places(*command, *words);
  add_division(*command, *words);
  add_form(*command, *words);
  add_adapter(*command, *words);
  commands::add_script_flags(*command);
  command->footer(
      "Example:\n  troupe convert --use-mcore-models --load-model-type hf --save-model-type mg "
      "--load-dir models/qwen --save-dir megatron/qwen --target-tensor-parallel-size 2\n"
      "Pickles are read as data: nothing in them is executed. docs/conversion.md describes the "
      "files.");
  command->callback([words, &action] {
    if (words->pickle.folder.empty() &&
        (words->options.load_dir.empty() || words->options.save_dir.empty()))
      throw commands::ArgumentProblem(
          "convert: expected --load-dir and --save-dir, or --from-pickle");
    const auto& adapter = words->options.adapter;
    if (adapter.folder.empty() && !words->options.lora_to_hf &&
        (adapter.rank > 0 || adapter.alpha > 0 || !adapter.targets.empty()))
      throw commands::ArgumentProblem(
          "convert: --lora-r, --lora-alpha and --lora-target-modules describe an adapter: expected "
          "--lora-load or --save-lora-to-hf");
    if (!words->pickle.folder.empty() && !words->options.load_dir.empty())
      throw commands::ArgumentProblem("convert: --from-pickle and --load-dir are two conversions");
    action = [words] { return run_convert(*words); };
  });
}

}  // namespace troupe::launch::tools::convert
