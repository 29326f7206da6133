// Chat templates for the prompts of evaluation tasks, without the weights of the model.
#pragma once

#include <memory>
#include <string>

#include "launch/model/model.h"
#include "launch/run/text_model.h"

namespace troupe::launch::commands {

/// The tokenizer and chat template of a model's folder; `chat_template`: another one, a file or the
/// name of a prompt type, or "". Errors of TextModel::load().
Result<std::shared_ptr<run::TextModel>> load_chat_text(const model::ModelOptions& model,
                                                       const std::string& chat_template);

}  // namespace troupe::launch::commands
