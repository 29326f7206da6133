// Template files of MindSpeed (--prompt-type-path, configs/finetune/templates.json): a JSON list of
// prompt types.
#pragma once

#include <string>

#include "engine/base/errors/error.h"
#include "engine/tokenizer/prompt_slots.h"

namespace troupe::engine::tokenizer {

/// The prompt type `name` of the file. A slot is a text, ["bos_token"], ["eos_token"], or {"token":
/// TEXT}, a text that is one token. Errc::not_found, with the names of the file, where it has none
/// of that name; bad_input, naming the member, for what is not of this form.
Result<PromptSlots> read_prompt_type(const std::string& path, const std::string& name);

}  // namespace troupe::engine::tokenizer
