// Decoders of tokenizer.json (Hugging Face tokenizers, decoders/) as a chain of stages that process
// tokens one by one: decoding a sequence and decoding a stream use the same code.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"

namespace troupe {
class Json;
}

namespace troupe::engine::tokenizer {

/// One stage of a running decode. A token arrives as one or more fragments; a stage passes on only
/// text that later tokens cannot change.
class DecodeStage {
 public:
  virtual ~DecodeStage() = default;
  /// A fragment of a token; `begins` and `ends` say whether it is the token's first and its last.
  virtual void push(std::string_view text, bool begins, bool ends) = 0;
  /// Called after the last token: passes on the remaining text.
  virtual void finish() { next->finish(); }
  DecodeStage* next = nullptr;
  const std::size_t* limit = nullptr;  ///< of the bytes of all text so far
};

/// The settings of a decoder; creates the stage that runs it. Outlives its stages.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual std::unique_ptr<DecodeStage> start() const = 0;
};
using DecoderChain = std::vector<std::unique_ptr<Decoder>>;

/// The chain of a "decoder" object (null: tokens with spaces between). Errc::unsupported, by name,
/// for other types.
Result<DecoderChain> make_decoders(const Json* decoder, std::string_view where);

/// One running decode.
class DecodeRun {
 public:
  explicit DecodeRun(const DecoderChain& chain);
  DecodeRun(DecodeRun&&) noexcept = default;
  DecodeRun& operator=(DecodeRun&&) noexcept = default;
  /// Throws Failure (Errc::bad_input) if the decoders make too much of the tokens.
  void push(std::string_view token);
  void finish() { stages_.front()->finish(); }
  /// Removes and returns the text decoded so far; valid UTF-8.
  std::string take();

 private:
  std::vector<std::unique_ptr<DecodeStage>> stages_;
  std::unique_ptr<std::string> text_;
  std::unique_ptr<std::size_t> limit_;
  std::size_t pushed_ = 0;
};

}  // namespace troupe::engine::tokenizer
