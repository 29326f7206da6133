// Tokenizer: converts text to token ids and back, as defined by the tokenizer.json of a Hugging
// Face folder and its companion files, a SentencePiece model, or the files of a slow tokenizer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/tokenizer/base/vocabulary.h"
#include "engine/tokenizer/decoders/decoder.h"
#include "engine/tokenizer/formats/transformers5.h"

namespace troupe::engine::tokenizer {

/// Encoding of text that looks like a special token ("<|im_end|>"): as that token, or as plain text
/// (for untrusted input). Added tokens that are not special are matched in either case.
enum class SpecialText { parsed, plain };

struct Pipeline;

/// Immutable; copies share their tables; every function may be called from several threads at once.
class Tokenizer {
 public:
  explicit Tokenizer(std::shared_ptr<const Pipeline> pipeline) : pipeline_(std::move(pipeline)) {}

  /// Whether `folder` has tokenizer files that load() supports.
  static bool is_in(const std::string& folder);

  /// Reads `path`: a folder with tokenizer.json, else with tokenizer.model (SentencePiece), else
  /// with vocab.json and merges.txt or vocab.txt of a slow class; or a tokenizer.json or a .model
  /// file itself. tokenizer_config.json, special_tokens_map.json and added_tokens.json beside it
  /// are read as well. `ids`: those of the file, or where transformers 5 builds the tokenizer
  /// otherwise its ids. Errc::not_found, io, bad_input (malformed or contradictory), unsupported
  /// (an unsupported component, by name).
  static Result<Tokenizer> load(const std::string& path, TokenizerIds ids = TokenizerIds::file);

  /// The ids of `text`; ill-formed UTF-8 counts as U+FFFD. With `add_special`, the tokens of the
  /// post-processor (such as BOS) are added. Truncation and padding settings of the file are
  /// not applied. Time grows about linearly with the text. Throws Failure (Errc::bad_input) when
  /// one of the file's regular expressions exceeds its limits on backtracking and time, and when
  /// the text grows beyond growth_limit().
  std::vector<TokenId> encode(std::string_view text, bool add_special,
                              SpecialText special_text = SpecialText::parsed) const;

  /// The text of `ids`, valid UTF-8; unknown ids are ignored, and special tokens are if
  /// `skip_special`. Spaces are not cleaned up.
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
  const std::shared_ptr<const Pipeline>& pipeline() const { return pipeline_; }

 private:
  std::shared_ptr<const Pipeline> pipeline_;
};

/// Decodes ids one by one. The text returned by push() is final and never ends inside a character;
/// the concatenation of all push() and finish() equals decode() of all ids.
class StreamDecoder {
 public:
  StreamDecoder(const Tokenizer& tokenizer, bool skip_special);
  /// The text that is final after this token; often empty inside a character.
  std::string push(TokenId id);
  /// The remaining text. No push() may follow.
  std::string finish();

 private:
  std::shared_ptr<const Pipeline> pipeline_;
  DecodeRun run_;
  bool skip_special_;
};

}  // namespace troupe::engine::tokenizer
