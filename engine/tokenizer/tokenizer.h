// Tokenizer: text to token ids and back, as the tokenizer.json of a Hugging Face folder and the
// files beside it say, or a SentencePiece model, or the files of a slow tokenizer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/tokenizer/decoders/decoder.h"
#include "engine/tokenizer/vocabulary.h"

namespace troupe::engine::tokenizer {

/// What text that looks like a special token ("<|im_end|>") is: that token, or letters like any
/// others (for what a stranger typed). Added tokens that are not special are found either way.
enum class SpecialText { parsed, plain };

/// A token with a part to play, from tokenizer_config.json or special_tokens_map.json. `id` is
/// empty when the vocabulary lacks the text.
struct NamedToken {
  std::string text;
  std::optional<TokenId> id;
};

/// Immutable; copies share their tables; every function may be called from several threads at once.
class Tokenizer {
 public:
  /// Whether `folder` has files of a tokenizer that load() knows.
  static bool is_in(const std::string& folder);

  /// Reads `path`: a folder with tokenizer.json, else with tokenizer.model (SentencePiece), else
  /// with vocab.json and merges.txt or vocab.txt of a slow class; or a tokenizer.json or a .model
  /// file itself. tokenizer_config.json, special_tokens_map.json and added_tokens.json beside it
  /// count. Errc::not_found, io, bad_input (malformed or contradictory), unsupported (a component
  /// that troupe does not have, by name).
  static Result<Tokenizer> load(const std::string& path);

  /// The ids of `text`; ill-formed UTF-8 counts as U+FFFD. With `add_special`, what the
  /// post-processor adds (such as a start token). Truncation and padding settings of the file are
  /// not applied. Time grows about linearly with the text. Throws Failure (Errc::bad_input) when
  /// one of the file's regular expressions exceeds its limit on backtracking.
  std::vector<TokenId> encode(std::string_view text, bool add_special,
                              SpecialText special_text = SpecialText::parsed) const;

  /// The text of `ids`, valid UTF-8; ids that are no token give nothing, special tokens give
  /// nothing when `skip_special`. Spaces are not cleaned up.
  std::string decode(std::span<const TokenId> ids, bool skip_special) const;

  /// One more than the largest id.
  std::size_t vocab_size() const;
  std::optional<TokenId> token_to_id(std::string_view token) const;
  /// The token as the vocabulary writes it ("Ġthe", "<0x0A>"); empty when there is none.
  std::string id_to_token(TokenId id) const;
  bool is_special(TokenId id) const;

  const std::optional<NamedToken>& bos() const;
  const std::optional<NamedToken>& eos() const;
  const std::optional<NamedToken>& pad() const;
  const std::optional<NamedToken>& unk() const;
  std::optional<TokenId> bos_id() const;
  std::optional<TokenId> eos_id() const;
  std::optional<TokenId> pad_id() const;

 private:
  friend class StreamDecoder;
  friend class TokenizerFile;
  struct Parts;
  explicit Tokenizer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

/// Decodes ids one by one. What push() returns never changes by what comes later and never ends
/// inside a character; all of it joined, with finish(), is decode() of all the ids.
class StreamDecoder {
 public:
  StreamDecoder(const Tokenizer& tokenizer, bool skip_special);
  /// The text that has become certain; often empty inside a character.
  std::string push(TokenId id);
  /// What was held back. No push after it.
  std::string finish();

 private:
  std::shared_ptr<const Tokenizer::Parts> parts_;
  DecodeRun run_;
  bool skip_special_;
};

}  // namespace troupe::engine::tokenizer
