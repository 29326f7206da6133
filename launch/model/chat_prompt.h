// ChatPrompt: a chat template with the special tokens of a model folder.
#pragma once

#include <optional>
#include <string>

#include "engine/base/json/json.h"
#include "engine/tokenizer/chat_template.h"

namespace troupe::launch::model {

class ChatPrompt {
 public:
  /// The template of `folder`, or the file or MindSpeed prompt type `given`, unless that is "".
  /// Errc::not_found, bad_input.
  static Result<ChatPrompt> load(const std::string& folder, const std::string& given);

  Result<std::string> render(engine::tokenizer::RenderInput input) const;
  /// The text of the template.
  std::string source() const { return template_.source(); }

 private:
  ChatPrompt(engine::tokenizer::ChatTemplate form, engine::tokenizer::TemplateTokens tokens)
      : template_(std::move(form)), tokens_(std::move(tokens)) {}

  engine::tokenizer::ChatTemplate template_;
  engine::tokenizer::TemplateTokens tokens_;
};

/// Reads the members messages, tools, documents, kwargs, add_generation_prompt, now, bos_token,
/// eos_token and the other roles of tokens of a line. Absent tokens are those of `own`.
/// Errc::bad_input.
Result<engine::tokenizer::RenderInput> read_render_input(
    const Json& line, const engine::tokenizer::TemplateTokens& own);

}  // namespace troupe::launch::model
