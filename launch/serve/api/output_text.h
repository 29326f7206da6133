// OutputText: the text of one choice while its tokens arrive.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/generate/generator.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe::launch::serve::api {

/// Decodes generated ids as the continuation of their prompt: some tokenizers put a space between
/// two tokens, but none before the first. The text is that of `troupe generate`.
class TextAfterPrompt {
 public:
  TextAfterPrompt(const engine::tokenizer::Tokenizer& tokenizer,
                  std::span<const std::int32_t> prompt, bool skip_special);
  std::string operator()(std::span<const std::int32_t> ids) const;

  const std::vector<std::int32_t>& context() const { return context_; }
  /// Bytes of the context's own text.
  std::size_t context_bytes() const { return before_.size(); }

 private:
  engine::tokenizer::Tokenizer tokenizer_;
  bool skip_special_;
  std::vector<std::int32_t> context_;  // the last tokens of the prompt
  std::string before_;                 // their text
};

/// Splits a growing text into pieces to send: a piece never ends inside a character, and never
/// holds the beginning of a stop string.
class OutputText {
 public:
  /// `stops` must outlive this. They end no text within the first `at_least` tokens.
  OutputText(const engine::tokenizer::Tokenizer& tokenizer, const TextAfterPrompt& decode,
             bool skip_special, const std::vector<std::string>& stops, std::int32_t at_least = 0);
  /// The new piece after this token; often empty.
  std::string push(std::int32_t token);
  /// The rest of the whole text.
  std::string finish(const std::string& whole) const;
  /// Bytes sent so far.
  std::size_t sent() const { return sent_; }

 private:
  std::size_t safe_size() const;

  engine::tokenizer::StreamDecoder stream_;
  const std::vector<std::string>* stops_;
  std::size_t skip_;  // bytes of the context that the stream still holds back
  std::string text_;
  std::size_t sent_ = 0;
  std::int64_t at_least_, tokens_ = 0;
  std::size_t settled_ = 0;  // bytes of the first at_least_ tokens
};

}  // namespace troupe::launch::serve::api
