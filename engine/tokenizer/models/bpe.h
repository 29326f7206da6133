// Byte-pair encoding as Hugging Face's tokenizers library does it (models/bpe): over characters,
// over bytes, with byte fallback.
#pragma once

#include <array>

#include "engine/tokenizer/models/merge_table.h"
#include "engine/tokenizer/models/model.h"

namespace troupe::engine::tokenizer {

class Bpe : public Model {
 public:
  /// Errc::bad_input for a merge whose parts or whole are not pieces, or an unknown token that is
  /// none; Errc::unsupported for dropout.
  static Result<std::unique_ptr<Model>> from_json(const Json& model, bool raw_bytes,
                                                  std::string_view where);

  std::unique_ptr<Workspace> make_workspace() const override;
  void encode(std::string_view word, Workspace& workspace,
              std::vector<TokenId>& out) const override;

 private:
  struct Scratch;
  Result<> read_options(const Json& model, std::string_view where);
  Result<> read_merges(const Json& model, std::string_view where);
  Result<> add_merge(std::string_view left, std::string_view right, std::size_t rank,
                     std::string_view where);
  void prepare_bytes();
  bool spaces_start_words() const;
  void encode_word(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const;
  void encode_uncached(std::string_view word, Scratch& scratch) const;
  void split_bytes(std::string_view word, std::vector<TokenId>& symbols) const;
  void split_characters(std::string_view word, Scratch& scratch) const;
  TokenId find_character(std::string_view character) const;
  bool fall_back(std::string_view character, std::vector<TokenId>& symbols) const;

  Vocabulary words_;  // with raw_bytes and ignore_merges: the same ids, by the bytes that their
                      // pieces stand for
  MergeTable merges_;
  std::string prefix_, suffix_;  // continuing_subword_prefix, end_of_word_suffix
  // Ids by byte: of its character with raw_bytes, else of <0x00> to <0xFF>.
  std::array<TokenId, 256> byte_ids_{};
  std::array<TokenId, 128> ascii_ids_{};
  TokenId unknown_ = -1;
  bool raw_bytes_ = false, byte_fallback_ = false, fuse_unknown_ = false, ignore_merges_ = false;
  // No merge joins a character to a space sign after it, so text may be split there without
  // changing the result.
  bool cut_at_spaces_ = false;
};

}  // namespace troupe::engine::tokenizer
