// TextModel: a model folder's tokenizer and chat template, for the data library and the rollouts.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/data/layouts/text_encoder.h"
#include "engine/generate/generator.h"
#include "engine/models/spec.h"
#include "engine/tokenizer/chat_template.h"
#include "engine/tokenizer/tokenizer.h"
#include "launch/config/run_config.h"

namespace troupe::launch::run {

class TextModel final : public engine::data::TextEncoder {
 public:
  /// `template_file`: a chat template that replaces the folder's own; may be empty. A folder
  /// without a tokenizer is accepted, for rows of token ids: encode() and render_chat() then fail.
  /// Returns the errors of the loaders.
  static Result<std::shared_ptr<TextModel>> load(
      const std::string& folder, const std::string& template_file,
      const engine::models::DecoderSpec& spec,
      engine::tokenizer::TokenizerIds ids = engine::tokenizer::TokenizerIds::file);
  /// That of the model of a run.
  static Result<std::shared_ptr<TextModel>> load(const config::RunConfig& config,
                                                 const engine::models::DecoderSpec& spec);

  Result<std::vector<std::int32_t>> encode(std::string_view text, bool add_special) const override;
  Result<engine::data::RenderedChat> render_chat(const Json& messages, bool add_generation_prompt,
                                                 const Json& tools) const override;
  bool has_chat_template() const override { return template_.has_value(); }
  std::optional<std::int32_t> begin_token() const override { return begin_; }
  std::optional<std::int32_t> end_token() const override { return end_; }
  std::int64_t vocabulary() const override { return vocabulary_; }

  /// Text of generated ids without special tokens; empty without a tokenizer.
  std::string decode(std::span<const std::int32_t> ids) const;
  /// The same with special tokens.
  std::string decode_all(std::span<const std::int32_t> ids) const;
  /// decode() by who wrote the tokens: consecutive ids of one mark (`sampled` [ids]: 1 the model, 0
  /// another) are one piece, true for the model's. Pieces without text are left out.
  std::vector<std::pair<std::string, bool>> pieces(std::span<const std::int32_t> ids,
                                                   std::span<const std::uint8_t> sampled) const;
  bool has_tokenizer() const { return tokenizer_.has_value(); }

 private:
  std::string folder_;
  std::optional<engine::tokenizer::Tokenizer> tokenizer_;
  std::optional<engine::tokenizer::ChatTemplate> template_;
  engine::tokenizer::TemplateTokens tokens_;
  std::optional<std::int32_t> begin_, end_;
  std::int64_t vocabulary_ = 0;
};

}  // namespace troupe::launch::run
