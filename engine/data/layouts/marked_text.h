// MarkedText: the text of a sample before tokenization, with the ranges that are trained on.
#pragma once

#include <string>
#include <vector>

#include "engine/data/layouts/sample.h"
#include "engine/data/layouts/text_encoder.h"

namespace troupe::engine::data {

struct MarkedText {
  struct Span {
    std::size_t begin = 0, end = 0;  ///< bytes
    float weight = 1;
  };
  std::string text;
  std::vector<Span> trained;  ///< ascending, disjoint
  bool add_special = false;   ///< plain text: add the tokenizer's special tokens (BOS)
  bool append_end = false;    ///< append the end token
};

/// `prompt` (text, messages or null) followed by `completion`. Plain text: the completion is
/// trained on. Messages: each assistant message of the completion is trained on, located by the
/// template's `generation` blocks or by rendering the conversation prefix by prefix. If the
/// template renders the message differently from the generation prompt, the text is the rendered
/// prompt, the message and the end token, as generation sees them: tags such as <think> that end
/// the rendered prompt and begin the message are written once. Errc::bad_input; Errc::unsupported:
/// no chat template.
Result<MarkedText> mark_text(const Json& prompt, const Json& completion, const Json& tools,
                             const TextEncoder& encoder);

/// The text of a prompt before its answer. A message of the assistant at its end is continued: the
/// text ends with it (as transformers' continue_final_message). Errc::bad_input.
Result<std::string> render_prompt(const Json& messages, const Json& tools,
                                  const TextEncoder& encoder);

/// Errc::unsupported for conversations without a chat template.
Result<RenderedChat> render(const Json& messages, bool add_generation_prompt, const Json& tools,
                            const TextEncoder& encoder);

}  // namespace troupe::engine::data
