// ChatPrompt: a chat template with the special tokens of a model folder.
#pragma once

#include <optional>
#include <string>

#include "engine/base/json.h"
#include "engine/tokenizer/chat_template.h"
#include "launch/commands/template_tokens.h"

namespace troupe::launch {

class ChatPrompt {
 public:
  /// The template of `folder`, or the file or MindSpeed prompt type `given`, unless that is "".
  /// Errc::not_found, bad_input.
  static Result<ChatPrompt> load(const std::string& folder, const std::string& given);

  Result<std::string> render(engine::tokenizer::RenderInput input) const;
  /// The text of the template.
  const std::string& source() const { return template_.source(); }

 private:
  ChatPrompt(engine::tokenizer::ChatTemplate form, TemplateTokens tokens)
      : template_(std::move(form)), tokens_(std::move(tokens)) {}

  engine::tokenizer::ChatTemplate template_;
  TemplateTokens tokens_;
};

/// Reads the members messages, tools, documents, kwargs, add_generation_prompt, bos_token,
/// eos_token and now of a line. Absent tokens are those of `own`. Errc::bad_input.
Result<engine::tokenizer::RenderInput> read_render_input(const Json& line,
                                                         const TemplateTokens& own);

}  // namespace troupe::launch
