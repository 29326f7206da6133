// MarkedText: the text of a sample before tokenization, with the ranges that are trained on.
#pragma once

#include <string>
#include <vector>

#include "engine/data/layouts/sample.h"
#include "engine/data/text_encoder.h"

namespace troupe::engine::data {

struct MarkedText {
  struct Span {
    std::size_t begin = 0, end = 0;  ///< bytes
    float weight = 1;
  };
  std::string text;
  std::vector<Span> trained;  ///< rising, disjoint
  bool add_special = false;   ///< text without a chat template: the tokenizer's own special tokens
                              ///< (BOS) belong to it
  bool append_end = false;    ///< the end token belongs behind it
};

/// `prompt` (text, messages or null) followed by `completion`. Plain text: the completion is
/// trained on. Messages: each assistant turn of the completion is, found by the template's
/// `generation` blocks or by rendering the conversation prefix by prefix. A template that renders
/// an answer otherwise than it announces it (another text after the generation prompt) is not used
/// for the answer: the rendered prompt, the answer's own text and the end token are what generation
/// will see. Errc::bad_input; Errc::unsupported: no chat template.
Result<MarkedText> mark_text(const Json& prompt, const Json& completion, const Json& tools,
                             const TextEncoder& encoder);

/// Errc::unsupported in words when conversations come without a chat template.
Result<RenderedChat> render(const Json& messages, bool add_generation_prompt, const Json& tools,
                            const TextEncoder& encoder);

}  // namespace troupe::engine::data
