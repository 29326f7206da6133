// A SentencePiece model, encoded by the SentencePiece library itself and decoded as it decodes.
#pragma once

#include <memory>
#include <string>

#include "engine/tokenizer/decoders/decoder.h"
#include "engine/tokenizer/models/model.h"
#include "engine/tokenizer/models/sentence_piece_file.h"

namespace troupe::engine::tokenizer {

class SentencePiece : public Model {
 public:
  /// Reads the bytes of a tokenizer.model. `prefix_everywhere`: the space that the model adds
  /// before a text is also added after an added token (transformers' "legacy"). Errc::bad_input,
  /// unsupported.
  static Result<std::unique_ptr<SentencePiece>> read(const std::string& bytes,
                                                     bool prefix_everywhere,
                                                     std::string_view where);
  ~SentencePiece() override;

  /// `word` is a whole segment of the original text.
  void encode(std::string_view word, Workspace& workspace,
              std::vector<TokenId>& out) const override;

  const SentencePieceFile& file() const { return file_; }
  /// The library's own roles; -1: none.
  struct Roles {
    TokenId unk, bos, eos, pad;
  };
  Roles roles() const;
  /// The decoder of these pieces; this model outlives it.
  DecoderChain decoders() const;

 private:
  struct Library;
  explicit SentencePiece(SentencePieceFile file);
  SentencePieceFile file_;
  TokenId unknown_ =
      0;  ///< the piece of that type: unk_id() of the library asks for its usual name, too
  /// The piece of a single NUL, as in InternLM's model, and the byte piece that is used instead
  /// where there is one: sentencepiece 0.2.3 treats the piece as unused. -1: none.
  TokenId nul_piece_ = -1, nul_byte_ = -1;
  std::unique_ptr<Library> library_;
};

}  // namespace troupe::engine::tokenizer
