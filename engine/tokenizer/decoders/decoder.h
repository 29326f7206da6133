// Decoders of tokenizer.json (Hugging Face tokenizers, decoders/) as a chain of stages that tokens
// flow through one by one: decoding a whole sequence and decoding a stream are the same code, so
// they cannot differ.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace troupe {
class Json;
}

namespace troupe::engine::tokenizer {

/// One running stage. A token comes as one or more fragments; a stage hands on only what later
/// tokens cannot change.
class DecodeStage {
 public:
  virtual ~DecodeStage() = default;
  /// A fragment of a token; `begins` and `ends` say whether it is the token's first and its last.
  virtual void push(std::string_view text, bool begins, bool ends) = 0;
  /// No token follows: hands on what was held back.
  virtual void finish() { next->finish(); }
  DecodeStage* next = nullptr;
};

/// A decoder's settings; makes the stage that runs it. Outlives its stages.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual std::unique_ptr<DecodeStage> start() const = 0;
};
using DecoderChain = std::vector<std::unique_ptr<Decoder>>;

/// The chain of a "decoder" object (null: tokens with spaces between). Errc::unsupported, by name,
/// for types that troupe does not have.
Result<DecoderChain> make_decoders(const Json* decoder, std::string_view where);

/// One decoding under way.
class DecodeRun {
 public:
  explicit DecodeRun(const DecoderChain& chain);
  DecodeRun(DecodeRun&&) noexcept = default;
  DecodeRun& operator=(DecodeRun&&) noexcept = default;
  void push(std::string_view token) { stages_.front()->push(token, true, true); }
  void finish() { stages_.front()->finish(); }
  /// The text so far that has not been taken; valid UTF-8.
  std::string take();

 private:
  std::vector<std::unique_ptr<DecodeStage>> stages_;
  std::unique_ptr<std::string> text_;
};

}  // namespace troupe::engine::tokenizer
