#include "engine/tokenizer/models/sentence_piece_file.h"

#include <cmath>
#include <cstring>
#include <unordered_set>

#include "engine/base/text/text.h"
#include "engine/tokenizer/base/vocabulary.h"
#include "engine/tokenizer/normalizers/precompiled.h"

namespace troupe::engine::tokenizer {
namespace {

/// One field of a protocol buffer's wire format.
struct Field {
  std::uint64_t number = 0;
  std::uint64_t value = 0;  // a varint, or the bits of a fixed field
  std::string_view bytes;   // of a field with a length
  bool has_length = false;
};

class WireReader {
 public:
  explicit WireReader(std::string_view in) : in_(in) {}

  /// Returns false at the end and if the rest is malformed; broken() distinguishes the two.
  bool next(Field& out) {
    if (in_.empty()) return false;
    std::uint64_t key = 0;
    out = {};
    if (!varint(key)) return false;
    out.number = key >> 3;
    switch (key & 7) {
      case 0:
        return varint(out.value);
      case 1:
        return fixed(8, out.value);
      case 2:
        return length(out);
      case 5:
        return fixed(4, out.value);
      default:
        return !(broken_ = true);
    }
  }
  bool broken() const { return broken_; }

 private:
  bool varint(std::uint64_t& out) {
    out = 0;
    for (unsigned shift = 0; shift < 64 && !in_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(in_.front());
      in_.remove_prefix(1);
      out |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return true;
    }
    return !(broken_ = true);
  }
  bool fixed(std::size_t size, std::uint64_t& out) {
    if (in_.size() < size) return !(broken_ = true);
    std::memcpy(&out, in_.data(), size);
    in_.remove_prefix(size);
    return true;
  }
  bool length(Field& out) {
    std::uint64_t size = 0;
    if (!varint(size) || size > in_.size()) return !(broken_ = true);
    out.bytes = in_.substr(0, size);
    out.has_length = true;
    in_.remove_prefix(size);
    return true;
  }
  std::string_view in_;
  bool broken_ = false;
};

/// Reads the messages of the file; keeps the first problem.
class FileReader {
 public:
  explicit FileReader(std::string_view where) : where_(where) {}

  Result<SentencePieceFile> read(std::string_view bytes) {
    walk(bytes, [this](const Field& field) {
      if (field.number == 1 && field.has_length) piece(field.bytes);
      if (field.number == 2 && field.has_length)
        walk(field.bytes, [this](const Field& inner) { trainer(inner); });
      if (field.number == 3 && field.has_length)
        walk(field.bytes, [this](const Field& inner) { normalizer(inner); });
      if (field.number == 5 && field.has_length)
        walk(field.bytes, [this](const Field& inner) { denormalizer(inner); });
    });
    if (problem_.ok() && out_.pieces.empty()) refuse("is no SentencePiece model: it has no pieces");
    if (problem_.ok() && (out_.model_type < 1 || out_.model_type > 4))
      refuse(cat("has the unknown model type ", out_.model_type));
    if (problem_.ok() && unknowns_ != 1)
      refuse(cat("must have one unknown piece, found ", unknowns_));
    if (!problem_.ok()) return fail(problem_.code, problem_.what);
    return std::move(out_);
  }

 private:
  struct Problem {
    Errc code = Errc::bad_input;
    std::string what;
    bool ok() const { return what.empty(); }
  };
  void refuse(std::string_view what, Errc code = Errc::bad_input) {
    if (problem_.ok()) problem_ = {code, cat(where_, ": the file ", what)};
  }

  template <class Take>
  void walk(std::string_view bytes, Take take) {
    WireReader reader(bytes);
    for (Field field; problem_.ok() && reader.next(field);) take(field);
    if (reader.broken())
      refuse(cat("is no SentencePiece model: its fields end in the middle, or after ",
                 out_.pieces.size(), " pieces come others"));
  }

  void piece(std::string_view bytes) {
    SentencePieceFile::Piece piece;
    std::uint64_t type = 1;
    walk(bytes, [&](const Field& field) {
      if (field.number == 1) piece.text = field.bytes;
      if (field.number == 2) {
        const auto bits = static_cast<std::uint32_t>(field.value);
        std::memcpy(&piece.score, &bits, sizeof bits);
      }
      if (field.number == 3) type = field.value;
    });
    const auto id = out_.pieces.size();
    if (static_cast<std::int64_t>(id) >= max_tokens)
      return refuse(cat("has more than ", max_tokens, " pieces"));
    if (type < 1 || type > 6) return refuse(cat("gives piece ", id, " the unknown type ", type));
    if (piece.text.empty()) return refuse(cat("has an empty piece, of id ", id));
    if (type == 6 && !is_byte(piece.text))
      return refuse(cat("calls the piece ", quote(piece.text), " a byte, which is written <0x41>"));
    if (!std::isfinite(piece.score))
      return refuse(cat("gives the piece ", quote(piece.text), " a score that is no number"));
    if (!seen_.insert(piece.text).second)
      return refuse(cat("has the piece ", quote(piece.text), " twice"));
    piece.type = static_cast<SentencePieceFile::Type>(type);
    out_.has_bytes = out_.has_bytes || is_byte(piece.text);
    unknowns_ += piece.type == SentencePieceFile::Type::unknown;
    out_.pieces.push_back(std::move(piece));
  }

  static bool is_byte(std::string_view text) {
    const auto digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
    return text.size() == 6 && text.starts_with("<0x") && digit(text[3]) && digit(text[4]) &&
           text[5] == '>';
  }

  void trainer(const Field& field) {
    if (field.number == 3) out_.model_type = static_cast<int>(field.value & 0xFFFF);
    if (field.number == 35) out_.byte_fallback = field.value != 0;
    if (field.number != 44) return;
    if (!valid_utf8(field.bytes)) return refuse("has a text for unknown pieces that is not UTF-8");
    out_.unknown_surface = field.bytes;
  }

  void normalizer(const Field& field) {
    if (field.number == 3) out_.add_dummy_prefix = field.value != 0;
    if (field.number == 4) out_.remove_extra_whitespaces = field.value != 0;
    if (field.number != 2 || field.bytes.empty()) return;
    if (const auto map = CharacterMap::read(field.bytes, where_); !map && problem_.ok())
      problem_ = {map.error().code, map.error().what};
  }

  void denormalizer(const Field& field) {
    if (field.number == 2 && !field.bytes.empty())
      refuse("has a denormalizer, which troupe does not have", Errc::unsupported);
  }

  std::string_view where_;
  SentencePieceFile out_;
  Problem problem_;
  std::unordered_set<std::string> seen_;
  int unknowns_ = 0;
};

}  // namespace

Result<SentencePieceFile> read_sentence_piece_file(std::string_view bytes, std::string_view where) {
  return FileReader(where).read(bytes);
}

}  // namespace troupe::engine::tokenizer
