// The settings of other tools as rows of launch/tools/tables/tool_table.h.
#pragma once

#include <string_view>

namespace troupe::launch::tools::tables {

/// The keys that TRL and LLaMA-Factory inherit from transformers' TrainingArguments, and those of
/// peft.
extern const std::string_view trainer_arguments_text;
/// Behind those of trainer_arguments_text.
extern const std::string_view trl_text, llama_factory_text;
extern const std::string_view verl_text;
/// The names until 0.9 and those since.
extern const std::string_view openrlhf_text;
/// Options of MindSpeed-LLM and keys of MindSpeed-RL.
extern const std::string_view mindspeed_text, megatron_flags_text;

}  // namespace troupe::launch::tools::tables
