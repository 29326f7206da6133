// MindSpeed's prompt types (--prompt-type): named chat templates, independent of a model folder,
// written after the documentation of MindSpeed-LLM. Each has generation blocks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/chat_template.h"

namespace troupe::engine::tokenizer {

std::vector<std::string_view> prompt_type_names();
bool is_prompt_type(std::string_view name);

/// Errc::not_found, with all names, for an unknown name.
Result<ChatTemplate> prompt_type(std::string_view name);

/// The file that `given` names: a template, or what precedes the # of templates.json#NAME. Empty
/// for the name of a prompt type.
std::string template_file_of(const std::string& given);
/// A template file, or else the prompt type of that name, or FILE#NAME: the template NAME of a
/// tokenizer_config.json, or the prompt type NAME of a template file of MindSpeed
/// (prompt_type_file.h). Errc::not_found if it is none of them.
Result<ChatTemplate> load_file_or_prompt_type(const std::string& given);

}  // namespace troupe::engine::tokenizer
