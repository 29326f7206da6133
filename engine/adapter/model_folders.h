// ModelFolders: the folders of a model that a command is given, which may be a LoRA adapter that
// names its base.
#pragma once

#include <string>

#include "engine/base/errors/error.h"

namespace troupe::engine::adapter {

struct ModelFolders {
  std::string model;    ///< config.json and weights
  std::string adapter;  ///< of that model, or ""
  /// Tokenizer, chat template and generation_config.json: the adapter's folder where the model was
  /// given as an adapter with a tokenizer of its own, otherwise `model`.
  std::string text;
};

/// Whether the folder contains an adapter and no model.
bool is_only_adapter(const std::string& folder);

/// The base model of the adapter in `folder`: base_model_name_or_path as a path, or relative to
/// the folder. Errc::not_found when there is no model directory; usage when no base is named.
Result<std::string> find_base(const std::string& folder);

/// `model` is a model directory, or, where `adapter` is "", that of an adapter. Does not check that
/// a model directory exists. Errc::not_found, usage.
Result<ModelFolders> model_folders(const std::string& model, const std::string& adapter);

}  // namespace troupe::engine::adapter
