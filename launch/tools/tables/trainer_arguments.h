// The keys that TRL and LLaMA-Factory inherit from transformers' TrainingArguments, and those of
// peft, as rows of launch/tools/tables/tool_table.h.
#pragma once

#include <string_view>

namespace troupe::launch::tools::tables {

std::string_view trainer_arguments_text();

}  // namespace troupe::launch::tools::tables
