// Unigram language model: of all ways to cut a word into pieces the one with the largest sum of
// scores, found with Viterbi's algorithm (Kudo, arXiv:1804.10959), as Hugging Face's tokenizers
// library does it (models/unigram).
#pragma once

#include <array>

#include "engine/tokenizer/base/byte_trie.h"
#include "engine/tokenizer/models/model.h"

namespace troupe::engine::tokenizer {

class Unigram : public Model {
 public:
  /// "vocab" is a list of [piece, score], "unk_id" an index or null. Errc::bad_input for other
  /// forms.
  static Result<std::unique_ptr<Model>> from_json(const Json& model, std::string_view where);

  std::unique_ptr<Workspace> make_workspace() const override;
  /// Throws Failure (Errc::bad_input) for a character without a piece when there is no unknown
  /// token.
  void encode(std::string_view word, Workspace& workspace,
              std::vector<TokenId>& out) const override;

 private:
  struct Scratch;
  Result<> read_pieces(const Json& model, std::string_view where);
  Result<> read_options(const Json& model, std::string_view where);
  void encode_uncached(std::string_view word, Scratch& scratch) const;
  void find_best_path(std::string_view word, Scratch& scratch) const;
  void write(std::string_view text, std::vector<TokenId>& out) const;

  ByteTrie trie_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
  std::array<TokenId, 256> byte_ids_{};  // of <0x00> to <0xFF>
  TokenId unknown_ = -1;
  bool byte_fallback_ = false;
};

}  // namespace troupe::engine::tokenizer
