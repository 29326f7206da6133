// IndexedDataset: reads PREFIX.bin and PREFIX.idx, the token files of Megatron core
// (megatron/core/datasets/indexed_dataset.py). All numbers are little-endian:
//   .idx: "MMIDIDX\0\0", u64 version (1), u8 type, u64 sequences N, u64 entries of the document
//         array M, i32[N] lengths in tokens, i64[N] byte offsets in .bin, i64[M] the first sequence
//         of each document (0 at first, N at last)
//   .bin: the tokens of all sequences, one after the other
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/files/file.h"

namespace troupe::engine::data::megatron {

/// TokenType: the data types of an indexed dataset, with the codes of Megatron core's .idx files.
enum class TokenType : std::uint8_t {
  u8 = 1,
  i8 = 2,
  i16 = 3,
  i32 = 4,
  i64 = 5,
  f64 = 6,
  f32 = 7,
  u16 = 8,
};

/// nullopt if there is no type of this code.
std::optional<TokenType> token_type_of(std::uint8_t code);
/// Bytes of one element.
std::size_t bytes_of(TokenType type);
/// "uint16", as numpy names it.
const char* to_string(TokenType type);

/// What pretraining data is stored in: uint16 below 65,500 entries, else int32
/// (DType.optimal_dtype of Megatron core).
TokenType token_type_for(std::size_t vocabulary);

constexpr std::string_view index_magic{"MMIDIDX\0\0", 9};
constexpr std::uint64_t index_version = 1;
constexpr std::size_t index_header_bytes = 34;

class IndexedDataset {
 public:
  /// Maps both files and checks every length, offset and document. `prefix`: the path without
  /// .bin and .idx. Errc::not_found, io; Errc::corrupt for files that contradict each other;
  /// Errc::unsupported for another version and for multimodal data.
  static Result<IndexedDataset> open(const std::string& prefix);

  const std::string& prefix() const { return prefix_; }
  TokenType type() const { return type_; }
  std::int64_t sequences() const { return sequences_; }
  std::int64_t documents() const { return document_entries_ - 1; }
  /// Tokens of all sequences.
  std::int64_t tokens() const { return tokens_; }
  /// Tokens of one sequence.
  std::int32_t length(std::int64_t sequence) const;
  /// The first sequence of a document; of document documents(): sequences().
  std::int64_t first_sequence(std::int64_t document) const;
  /// The bytes of one sequence in .bin.
  std::span<const std::byte> bytes(std::int64_t sequence) const;
  /// Appends `count` tokens of a sequence, from token `offset` on. Errc::bad_input for a token
  /// beyond int32; Errc::unsupported for floating-point data.
  Result<> append(std::int64_t sequence, std::int32_t offset, std::int32_t count,
                  std::vector<std::int32_t>& to) const;
  /// All tokens of a sequence. The same errors.
  Result<std::vector<std::int32_t>> sequence(std::int64_t sequence) const;

 private:
  IndexedDataset(std::string prefix, MappedFile index, MappedFile data)
      : prefix_(std::move(prefix)), index_(std::move(index)), data_(std::move(data)) {}
  Result<> read_header();
  Result<> check_sequences();
  Result<> check_documents() const;
  std::int64_t offset(std::int64_t sequence) const;

  std::string prefix_;
  MappedFile index_, data_;
  TokenType type_ = TokenType::i32;
  std::int64_t sequences_ = 0, document_entries_ = 0, tokens_ = 0;
};

}  // namespace troupe::engine::data::megatron
