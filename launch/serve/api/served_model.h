// ServedModel: the model of `troupe serve` with what its endpoints need besides the decoder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/generate/sampling_params.h"
#include "launch/model/chat_prompt.h"
#include "launch/model/model.h"
#include "launch/serve/api/message/message_reader.h"
#include "launch/serve/api/output_constraints.h"

namespace troupe::engine::nn {
class LoraModel;
}

namespace troupe::launch::serve::api {

struct ServedModelOptions {
  model::ModelOptions model;
  std::string name;              ///< of the model in requests; "": ModelOptions::model
  std::string chat_template;     ///< a template file or prompt type; "": the model's template
  std::string runner = "auto";   ///< auto, generate, pooling
  std::string tool_call_parser;  ///< of call_format_names(); "": the format of the template
  std::string reasoning_parser;  ///< of reasoning_format_names(); "": none
  /// Its distribution is the default of requests, instead of that of generation_config.json.
  std::optional<engine::generate::SamplingParams> sampling = std::nullopt;
  /// Answers have the versions of the weights, unless a request refuses them.
  bool names_versions = false;
};

/// A conversation for the template.
struct Conversation : engine::tokenizer::RenderInput {
  bool continues_last = false;  ///< the answer continues the last message
};

/// Apart from load() and decoder(), every function may be called from several threads at once.
class ServedModel {
 public:
  /// Errors of Model::load() and of generation_config.json. A model without a tokenizer or a chat
  /// template is served without what needs them. `part`: what this rank loads.
  static Result<ServedModel> load(const ServedModelOptions& options,
                                  const engine::models::ModelPart& part = {});

  /// Reads and checks other weights for the model. The function that is returned copies them into
  /// the decoder and may be called once, while nothing computes with it. Errc::unsupported for a
  /// model with an adapter; bad_input unless the folder's config.json is that of the model; errors
  /// of load_decoder().
  Result<std::function<Result<>()>> read_weights(const std::string& folder);
  /// The adapter of the model in a folder; may be called while another thread computes with the
  /// decoder. Errc::usage where the served model is an adapter itself; errors of load_lora_model().
  Result<std::shared_ptr<const engine::nn::LoraModel>> load_adapter(const std::string& folder);
  engine::models::Decoder& decoder() { return model_.decoder(); }
  engine::ops::Precision precision() const { return model_.precision(); }
  const std::string& name() const { return name_; }
  std::int64_t vocabulary() const { return vocabulary_; }
  /// Maximum tokens of prompt and output.
  std::int64_t context() const { return context_; }

  /// Whether the server answers with scores or embeddings instead of generating text.
  bool pools() const { return pools_; }
  /// Of the hidden states.
  std::int64_t width() const { return model_.spec().width; }
  /// Outputs of the score head; 0: the model has none.
  int labels() const { return model_.spec().labels; }
  /// The name of a label, or null.
  Json label(std::size_t index) const;
  /// Whether the score head is one for tokens.
  bool classifies_tokens() const { return classifies_tokens_; }

  /// Defaults of a request: sampling at temperature 1, with temperature, top_k, top_p, min_p and
  /// repetition_penalty of generation_config.json (as vLLM does).
  const engine::generate::SamplingParams& defaults() const { return defaults_; }
  const std::vector<std::int32_t>& eos_ids() const { return eos_ids_; }
  /// The default of return_weight_versions.
  bool names_versions() const { return names_versions_; }

  /// nullptr: the folder has none, and requests with text are refused.
  const engine::tokenizer::Tokenizer* tokenizer() const { return tokenizer_.get(); }
  /// Errc::unsupported without a tokenizer; bad_input for a text without tokens, for one whose
  /// ids the model does not have, and, before it is encoded, for one that is longer than the
  /// context filled with the longest token.
  Result<std::vector<std::int32_t>> encode(std::string_view text, bool add_special) const;
  /// Errc::unsupported without a tokenizer; errors of OutputConstraints::compile().
  Result<OutputConstraint> constrain(const ConstraintText& text) const;
  /// OutputConstraints::compile_alone(); there is a tokenizer.
  Result<std::shared_ptr<engine::constraints::Constraint>> constrain_alone(
      const ConstraintText& text) const {
    return constraints_->compile_alone(text);
  }
  /// The bytes that a token adds inside a text; "": none is shown. There is a tokenizer.
  const std::string& bytes_of(std::int32_t token) const { return constraints_->bytes_of(token); }
  /// Whether decoding drops a space at the beginning of a text; there is a tokenizer.
  bool drops_first_space() const { return constraints_->drops_first_space(); }
  /// The prompt of a conversation. Errc::unsupported without a template; errors of the template.
  /// Errc::bad_input, too, where the template does not show the last message.
  Result<std::string> render(Conversation conversation) const;
  bool template_has_tools() const;
  /// tokenizer_config.json without paths, and the template. Errc::unsupported without a tokenizer.
  Result<Json> tokenizer_info() const;
  /// How the model writes tool calls; none when it is not known.
  CallFormat call_format() const { return call_format_; }
  ReasoningFormat reasoning_format() const { return reasoning_format_; }

 private:
  explicit ServedModel(model::Model model) : model_(std::move(model)) {}
  Result<> read_head(const std::string& runner);
  Result<> read_generation_config(const ServedModelOptions& options);
  Result<> read_formats(const ServedModelOptions& options);

  model::Model model_;
  std::string name_;
  std::int64_t vocabulary_ = 0, context_ = 0;
  std::int64_t token_bytes_ = 0;  // of the longest token, at least
  bool pools_ = false, classifies_tokens_ = false, names_versions_ = false;
  Json labels_;  // id2label of config.json
  engine::generate::SamplingParams defaults_;
  std::vector<std::int32_t> eos_ids_;
  std::shared_ptr<const engine::tokenizer::Tokenizer> tokenizer_;
  std::unique_ptr<OutputConstraints> constraints_;  // with a tokenizer
  std::optional<model::ChatPrompt> chat_prompt_;
  CallFormat call_format_ = CallFormat::none;
  ReasoningFormat reasoning_format_ = ReasoningFormat::none;
  Json tokenizer_config_;                   // null: there is no file
  std::string no_tokenizer_, no_template_;  // why there is none
};

}  // namespace troupe::launch::serve::api
