// Reads and validates a SentencePiece model file (sentencepiece_model.proto) before the library
// does: the library trusts its files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"

namespace troupe::engine::tokenizer {

struct SentencePieceFile {
  enum class Type { normal = 1, unknown, control, user_defined, unused, byte };
  struct Piece {
    std::string text;
    float score = 0;
    Type type = Type::normal;
  };
  std::vector<Piece> pieces;  ///< by id
  std::string unknown_surface = " \u2047 ";
  bool add_dummy_prefix = true, remove_extra_whitespaces = true;
  bool byte_fallback = false;
  bool has_bytes = false;  ///< pieces called <0x41> or the like, of any type
  int model_type = 1;      ///< unigram, bpe, word, char
};

/// Errc::bad_input if it is no such file, has pieces that are empty, equal or not UTF-8, scores
/// that are NaN, or a character map that points outside itself; Errc::unsupported for a
/// denormalizer.
Result<SentencePieceFile> read_sentence_piece_file(std::string_view bytes, std::string_view where);

}  // namespace troupe::engine::tokenizer
