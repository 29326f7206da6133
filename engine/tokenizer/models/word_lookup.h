// Models that look words up in the vocabulary (Hugging Face tokenizers, models/wordlevel and
// models/wordpiece).
#pragma once

#include <string>

#include "engine/tokenizer/base/byte_trie.h"
#include "engine/tokenizer/models/model.h"

namespace troupe::engine::tokenizer {

/// A word is a token, or it is the unknown token.
class WordLevel : public Model {
 public:
  /// "unk_token" may be absent from the vocabulary; then encode throws Failure (Errc::bad_input)
  /// for unknown words.
  static Result<std::unique_ptr<Model>> from_json(const Json& model, std::string_view where);
  void encode(std::string_view word, Workspace& workspace,
              std::vector<TokenId>& out) const override;

 private:
  TokenId unknown_ = -1;
};

/// Greedy longest match; a word that cannot be split this way is the unknown token.
class WordPiece : public Model {
 public:
  /// Errc::bad_input when the unknown token is not in the vocabulary.
  static Result<std::unique_ptr<Model>> from_json(const Json& model, std::string_view where);
  void encode(std::string_view word, Workspace& workspace,
              std::vector<TokenId>& out) const override;

 private:
  ByteTrie trie_;
  ByteTrie::Node continued_ =
      ByteTrie::root;  // where pieces that do not begin a word are looked for; none: there are none
  std::size_t max_word_characters_ = 100;  // in characters
  TokenId unknown_ = -1;
};

}  // namespace troupe::engine::tokenizer
