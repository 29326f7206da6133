// MindSpeed's prompt types (--prompt-type): ways to write a conversation that have a name and
// belong to no folder. Written here after the formats that MindSpeed-LLM's documentation describes;
// each is a chat template like any other, with generation blocks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/chat_template.h"

namespace troupe::engine::tokenizer {

std::vector<std::string_view> prompt_type_names();
bool is_prompt_type(std::string_view name);

/// Errc::not_found with all names when there is none of this one.
Result<ChatTemplate> prompt_type(std::string_view name);

/// A template file, or the prompt type of that name; a file wins. Errc::not_found when it is
/// neither.
Result<ChatTemplate> load_file_or_prompt_type(const std::string& given);

}  // namespace troupe::engine::tokenizer
