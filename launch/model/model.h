// Model: a device, a decoder and a tokenizer loaded on demand, for the commands.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/adapter/model_folders.h"
#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"
#include "engine/models/decoder.h"
#include "engine/tokenizer/tokenizer.h"
#include "launch/model/model_overrides.h"

namespace troupe::launch::model {

/// Options for loading and running a model.
struct ModelOptions {
  std::string model;    ///< a model directory, or that of an adapter that names its base
  std::string adapter;  ///< may be empty
  engine::ops::Precision dtype = engine::ops::Precision::f32;  ///< of matrix multiplications
  int threads = 0;
  ModelOverrides overrides;  ///< of the model, the base where there is an adapter
  engine::tokenizer::TokenizerIds tokenizer_ids = engine::tokenizer::TokenizerIds::file;
  bool gradients = false;  ///< allocates those of the parameters
  /// A folder without weight files gets random weights (checkpoint/init_weights.h), which have the
  /// standard deviation initializer_range of its config.json.
  bool random_weights = false;
  /// Makes the device that the model computes on from the machine's; empty: that device.
  std::function<std::shared_ptr<engine::ops::Device>(std::shared_ptr<engine::ops::Device>)>
      observe = {};
};

/// The output head that a command needs.
enum class NeededHead { any, language };

class Model {
 public:
  /// Loads configuration and weights; an adapter's base with the adapter. Returns the errors of
  /// checkpoint::load_decoder; Errc::corrupt for a damaged checkpoint
  /// (checkpoint::verify_model_files); Errc::usage for a reward model or critic where a language
  /// model is needed. `part`: what this rank loads.
  static Result<Model> load(const ModelOptions& options, NeededHead head = NeededHead::any,
                            const engine::models::ModelPart& part = {});

  engine::models::Decoder& decoder() { return *decoder_; }
  const engine::models::DecoderSpec& spec() const { return decoder_->spec(); }
  const engine::models::ModelPart& part() const { return part_; }
  engine::ops::Precision precision() const { return precision_; }
  const engine::adapter::ModelFolders& folders() const { return folders_; }
  /// The folder's tokenizer, loaded on first use.
  Result<const engine::tokenizer::Tokenizer*> tokenizer();
  /// The ids of a line's "ids", or of its text under `text_key` with special tokens added; at least
  /// one, each in the vocabulary.
  Result<std::vector<std::int32_t>> tokens_of(const Json& line, std::string_view text_key);
  /// The ids of a text; at least one, each in the vocabulary.
  Result<std::vector<std::int32_t>> tokens_of_text(std::string_view text, bool add_special);

 private:
  engine::adapter::ModelFolders folders_;
  engine::models::ModelPart part_;
  std::shared_ptr<engine::ops::Device> device_;
  std::unique_ptr<engine::models::Decoder> decoder_;
  engine::ops::Precision precision_ = engine::ops::Precision::f32;
  engine::tokenizer::TokenizerIds ids_ = engine::tokenizer::TokenizerIds::file;
  std::optional<engine::tokenizer::Tokenizer> tokenizer_;
};

}  // namespace troupe::launch::model
