#include "launch/commands/eval/chat_text.h"

#include "engine/adapter/model_folders.h"
#include "engine/checkpoint/load_decoder.h"

namespace troupe::launch::commands {

Result<std::shared_ptr<run::TextModel>> load_chat_text(const model::ModelOptions& model,
                                                       const std::string& chat_template) {
  const auto folders = engine::adapter::model_folders(model.model, model.adapter);
  RETURN_IF_ERROR(folders);
  const auto spec = engine::checkpoint::read_folder_spec(folders->model, model.overrides.values);
  RETURN_IF_ERROR(spec);
  return run::TextModel::load(folders->text, chat_template, *spec, model.tokenizer_ids);
}

}  // namespace troupe::launch::commands
