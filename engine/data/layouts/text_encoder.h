// TextEncoder: the interface of a tokenizer and its chat template for the data library. The caller
// adapts those of the model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/json/json.h"

namespace troupe::engine::data {

struct RenderedChat {
  std::string text;
  /// Half-open ranges of bytes of `text` inside `generation` blocks; empty when the template has
  /// none.
  std::vector<std::pair<std::size_t, std::size_t>> assistant_spans;
};

class TextEncoder {
 public:
  virtual ~TextEncoder() = default;
  /// Token ids of UTF-8 text. Text of special tokens inside it becomes those tokens; `add_special`
  /// adds what the post-processor adds (BOS).
  virtual Result<std::vector<std::int32_t>> encode(std::string_view text,
                                                   bool add_special) const = 0;
  /// `messages`: an array of {"role", "content", ...}; `tools`: an array, or null.
  virtual Result<RenderedChat> render_chat(const Json& messages, bool add_generation_prompt,
                                           const Json& tools) const = 0;
  virtual bool has_chat_template() const = 0;
  /// The token that begins a text; nullopt: there is none.
  virtual std::optional<std::int32_t> begin_token() const { return std::nullopt; }
  /// The token that ends a completion; nullopt: no token is appended.
  virtual std::optional<std::int32_t> end_token() const = 0;
  /// Size of the model's vocabulary: rows of ids outside it are malformed. 0: unknown, not checked.
  virtual std::int64_t vocabulary() const = 0;
};

}  // namespace troupe::engine::data
