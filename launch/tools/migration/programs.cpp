#include "launch/tools/migration/programs.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "engine/base/text/text.h"

namespace troupe::launch::tools::migration {
namespace {

struct KnownProgram {
  std::string_view part;  ///< of the word that names it
  tables::Tool tool;
};
constexpr std::array programs{KnownProgram{"openrlhf.cli.", tables::Tool::openrlhf},
                              KnownProgram{"verl.trainer.", tables::Tool::verl},
                              KnownProgram{"verl/trainer/", tables::Tool::verl},
                              KnownProgram{"verl.experimental.", tables::Tool::verl},
                              KnownProgram{"recipe.dapo.", tables::Tool::verl},
                              KnownProgram{"llamafactory-cli", tables::Tool::llama_factory},
                              KnownProgram{"llamafactory.", tables::Tool::llama_factory},
                              KnownProgram{"posttrain_gpt.py", tables::Tool::mindspeed},
                              KnownProgram{"pretrain_gpt.py", tables::Tool::mindspeed},
                              KnownProgram{"cli/train_", tables::Tool::mindspeed},
                              KnownProgram{"trl/scripts/", tables::Tool::trl},
                              KnownProgram{"examples/scripts/", tables::Tool::trl}};

struct OtherTask {
  std::string_view part, instead;
};
// Programs of these tools that do not train, with what does the same here.
constexpr std::array tasks{
    OtherTask{"verl.trainer.main_generation", "troupe generate samples from a model"},
    OtherTask{"verl.trainer.main_eval", "troupe eval evaluates a model"},
    OtherTask{"verl.model_merger", "checkpoints are model directories already"},
    OtherTask{"openrlhf.cli.batch_inference", "troupe generate and troupe score do this"},
    OtherTask{"openrlhf.cli.serve_rm", "a reward model is a rule of reward (docs/rewards.md)"},
    OtherTask{"openrlhf.cli.interactive_chat", "troupe chat does this"},
    OtherTask{"openrlhf.cli.lora_combiner", "troupe merge does this"},
    OtherTask{"convert_ckpt", "troupe convert does this (docs/conversion.md)"},
    OtherTask{"preprocess_data.py", "troupe preprocess does this (docs/pretraining.md)"},
    OtherTask{"merge_datasets.py", "troupe preprocess does this (docs/pretraining.md)"},
    OtherTask{"inference.py", "troupe generate and troupe chat do this"},
    OtherTask{"evaluation.py", "troupe eval evaluates a model"}};

struct OtherTool {
  std::string_view part, name;
};
constexpr std::array other_tools{OtherTool{"axolotl", "axolotl"},
                                 OtherTool{"torchtune", "torchtune"},
                                 OtherTool{"unsloth", "unsloth"},
                                 OtherTool{"nemo_rl", "NeMo-RL"},
                                 OtherTool{"examples/run_grpo", "NeMo-RL"},
                                 OtherTool{"examples/run_sft", "NeMo-RL"},
                                 OtherTool{"examples/run_dpo", "NeMo-RL"},
                                 OtherTool{"nemo_aligner", "NeMo-Aligner"},
                                 OtherTool{"areal.", "AReaL"},
                                 OtherTool{"areal/", "AReaL"},
                                 OtherTool{"swift/cli", "ms-swift"},
                                 OtherTool{"slime", "slime"},
                                 OtherTool{"xtuner", "XTuner"},
                                 OtherTool{"start_rlvr_pipeline", "ROLL"}};

struct KeyMark {
  std::string_view name;
  std::array<std::string_view, 3> keys;  ///< all of them are given; "" is no key
};
// Keys that only one tool has together. A star stands for the members of a section.
constexpr std::array marks{
    KeyMark{"axolotl", {"base_model", "datasets", ""}},
    KeyMark{"axolotl", {"base_model", "sequence_len", ""}},
    KeyMark{"axolotl", {"base_model", "micro_batch_size", ""}},
    KeyMark{"LLaMA-Factory v1", {"model", "train_dataset", ""}},
    KeyMark{"LLaMA-Factory v1", {"model", "dist_config.*", ""}},
    KeyMark{"LLaMA-Factory v1", {"model", "peft_config.*", ""}},
    KeyMark{"LLaMA-Factory v1", {"model", "kernel_config.*", ""}},
    KeyMark{"LLaMA-Factory v1", {"model", "sample_backend", ""}},
    KeyMark{"torchtune", {"model._component_", "", ""}},
    KeyMark{"torchtune", {"tokenizer._component_", "", ""}},
    KeyMark{"torchtune", {"optimizer._component_", "", ""}},
    KeyMark{"NeMo-RL", {"policy.model_name", "cluster.*", ""}},
    KeyMark{"NeMo-RL", {"policy.model_name", "grpo.*", ""}},
    KeyMark{"NeMo-RL", {"policy.model_name", "checkpointing.*", ""}},
    KeyMark{"NeMo-Aligner", {"trainer.ppo.*", "", ""}},
    KeyMark{"AReaL", {"allocation_mode", "experiment_name", ""}},
    KeyMark{"AReaL", {"gconfig.*", "actor.*", ""}},
    KeyMark{"ROLL", {"actor_train.*", "actor_infer.*", ""}},
    KeyMark{"ms-swift", {"rlhf_type", "", ""}},
    KeyMark{"ms-swift", {"train_type", "model", ""}},
    KeyMark{"unsloth", {"max_seq_length", "use_gradient_checkpointing", "load_in_4bit"}}};

bool has_key(const ForeignRun& run, std::string_view key) {
  const bool section = key.ends_with('*');
  if (section) key.remove_suffix(1);
  return key.empty() || std::ranges::any_of(run.settings, [&](const ForeignSetting& each) {
           return section ? each.key.starts_with(key) || each.key == key.substr(0, key.size() - 1)
                          : each.key == key;
         });
}

}  // namespace

std::optional<tables::Tool> tool_of(const std::string& word) {
  if (word == "trl") return tables::Tool::trl;
  for (const KnownProgram& program : programs)
    if (word.find(program.part) != std::string::npos) return program.tool;
  return std::nullopt;
}

std::string other_program(const std::string& word) {
  for (const OtherTask& task : tasks)
    if (word.find(task.part) != std::string::npos)
      return cat(quote(word, 60), " does not train: ", task.instead);
  if (word.find('=') != std::string::npos) return "";
  for (const OtherTool& other : other_tools)
    if (word.find(other.part) != std::string::npos)
      return cat("a program of ", other.name, " (", quote(word, 60), "), which is not supported");
  if (word == "tune") return "a program of torchtune (tune), which is not supported";
  if (word == "swift") return "a program of ms-swift (swift), which is not supported";
  return "";
}

std::string_view unsupported_tool(const ForeignRun& run) {
  for (const KeyMark& mark : marks)
    if (std::ranges::all_of(mark.keys, [&](std::string_view key) { return has_key(run, key); }))
      return mark.name;
  return "";
}

void refuse_tool(std::string_view where, std::string_view name) {
  const bool v1 = name == "LLaMA-Factory v1";
  throw Failure({Errc::unsupported, cat(where, ": this is a configuration of ", name,
                                        ", which is not supported; import reads TRL, LLaMA-Factory",
                                        v1 ? " (files with stage and model_name_or_path)" : "",
                                        ", verl, OpenRLHF and MindSpeed")});
}

}  // namespace troupe::launch::tools::migration
