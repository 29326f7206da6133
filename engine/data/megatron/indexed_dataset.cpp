#include "engine/data/megatron/indexed_dataset.h"

#include <cstring>
#include <limits>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::engine::data::megatron {
namespace {

struct Kind {
  TokenType type;
  std::size_t bytes;
  const char* name;
};
constexpr Kind kinds[] = {
    {TokenType::u8, 1, "uint8"},    {TokenType::i8, 1, "int8"},    {TokenType::i16, 2, "int16"},
    {TokenType::i32, 4, "int32"},   {TokenType::i64, 8, "int64"},  {TokenType::f64, 8, "float64"},
    {TokenType::f32, 4, "float32"}, {TokenType::u16, 2, "uint16"},
};

const Kind& kind_of(TokenType type) {
  const auto code = static_cast<std::size_t>(type);
  check(code >= 1 && code <= std::size(kinds), "a token type without a code");
  return kinds[code - 1];
}

// The arrays behind the header of 34 bytes are not aligned.
template <class T>
T load(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <class T>
Result<> append_tokens(std::span<const std::byte> bytes, std::vector<std::int32_t>& to) {
  constexpr auto smallest = std::numeric_limits<std::int32_t>::min();
  constexpr auto largest = std::numeric_limits<std::int32_t>::max();
  to.reserve(to.size() + bytes.size() / sizeof(T));
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    const T value = load<T>(bytes, at);
    if constexpr (sizeof(T) > sizeof(std::int32_t))
      if (value < smallest || value > largest)
        return fail(Errc::bad_input, cat("expected token ids of 32 bits, found ", value));
    to.push_back(static_cast<std::int32_t>(value));
  }
  return {};
}

}  // namespace

std::optional<TokenType> token_type_of(std::uint8_t code) {
  if (code < 1 || code > std::size(kinds)) return std::nullopt;
  return static_cast<TokenType>(code);
}

std::size_t bytes_of(TokenType type) {
  return kind_of(type).bytes;
}

const char* to_string(TokenType type) {
  return kind_of(type).name;
}

TokenType token_type_for(std::size_t vocabulary) {
  return vocabulary < 65500 ? TokenType::u16 : TokenType::i32;
}

Result<IndexedDataset> IndexedDataset::open(const std::string& prefix) {
  auto index = MappedFile::open(prefix + ".idx");
  RETURN_IF_ERROR(index);
  auto data = MappedFile::open(prefix + ".bin");
  RETURN_IF_ERROR(data);
  IndexedDataset out(prefix, std::move(*index), std::move(*data));
  RETURN_IF_ERROR(out.read_header());
  RETURN_IF_ERROR(out.check_sequences());
  RETURN_IF_ERROR(out.check_documents());
  return out;
}

Result<> IndexedDataset::read_header() {
  const auto bytes = index_.bytes();
  const std::string path = prefix_ + ".idx";
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (bytes.size() < index_header_bytes || !text.starts_with(index_magic))
    return fail(Errc::corrupt, cat(path, ": expected the index of a Megatron dataset (MMIDIDX and ",
                                   "a header of 34 bytes), found ", quote(text.substr(0, 9)),
                                   " and ", bytes.size(), " bytes"));
  const auto version = load<std::uint64_t>(bytes, 9);
  if (version != index_version)
    return fail(Errc::unsupported, cat(path, ": expected version 1, found ", version));
  const auto code = load<std::uint8_t>(bytes, 17);
  const auto type = token_type_of(code);
  if (!type)
    return fail(Errc::corrupt, cat(path, ": expected a data type from 1 to 8, found ", int{code}));
  type_ = *type;
  const auto sequences = load<std::uint64_t>(bytes, 18), documents = load<std::uint64_t>(bytes, 26);
  const std::uint64_t room = bytes.size() - index_header_bytes;
  const auto problem = [&](Errc kind, std::string_view what) {
    return fail(kind, cat(path, ": a header of ", sequences, " sequences and ", documents,
                          " document entries, and ", bytes.size(), " bytes: ", what));
  };
  // Divisions, so that no product overflows.
  if (documents == 0 || sequences > room / 12 || documents > (room - sequences * 12) / 8)
    return problem(Errc::corrupt, "the file is truncated or its header is damaged");
  const std::uint64_t rest = room - sequences * 12 - documents * 8;
  if (rest == sequences && sequences > 0)
    return problem(Errc::unsupported, "the modes of a multimodal dataset, which is not supported");
  if (rest != 0) return problem(Errc::corrupt, cat(rest, " bytes too many"));
  sequences_ = static_cast<std::int64_t>(sequences);
  document_entries_ = static_cast<std::int64_t>(documents);
  return {};
}

std::int64_t IndexedDataset::offset(std::int64_t sequence) const {
  return load<std::int64_t>(
      index_.bytes(), index_header_bytes + static_cast<std::size_t>(sequences_ * 4 + sequence * 8));
}

Result<> IndexedDataset::check_sequences() {
  const auto size = static_cast<std::int64_t>(data_.bytes().size());
  const auto width = static_cast<std::int64_t>(bytes_of(type_));
  for (std::int64_t i = 0; i < sequences_; ++i) {
    const std::int64_t tokens = length(i), begin = offset(i);
    if (tokens < 0 || begin < 0 || begin > size || tokens > (size - begin) / width)
      return fail(Errc::corrupt,
                  cat(prefix_, ".idx: sequence ", i, " has ", tokens, " tokens of ", width,
                      " bytes at byte ", begin, ", but ", prefix_, ".bin has ", size,
                      " bytes; the two files do not belong together, or one is truncated"));
    tokens_ += tokens;
  }
  return {};
}

Result<> IndexedDataset::check_documents() const {
  std::int64_t before = 0;
  for (std::int64_t i = 0; i < document_entries_; ++i) {
    const std::int64_t first = first_sequence(i);
    if ((i == 0 && first != 0) || first < before || first > sequences_)
      return fail(Errc::corrupt,
                  cat(prefix_, ".idx: document ", i, " begins at sequence ", first,
                      "; expected 0 at first, then ascending numbers up to ", sequences_));
    before = first;
  }
  if (before != sequences_)
    return fail(Errc::corrupt, cat(prefix_, ".idx: the last document ends at sequence ", before,
                                   ", but there are ", sequences_));
  return {};
}

std::int32_t IndexedDataset::length(std::int64_t sequence) const {
  check(sequence >= 0 && sequence < sequences_, "a sequence of the dataset");
  return load<std::int32_t>(index_.bytes(),
                            index_header_bytes + static_cast<std::size_t>(sequence) * 4);
}

std::int64_t IndexedDataset::first_sequence(std::int64_t document) const {
  check(document >= 0 && document < document_entries_, "a document of the dataset");
  return load<std::int64_t>(
      index_.bytes(),
      index_header_bytes + static_cast<std::size_t>(sequences_ * 12 + document * 8));
}

std::span<const std::byte> IndexedDataset::bytes(std::int64_t sequence) const {
  const auto count = static_cast<std::size_t>(length(sequence)) * bytes_of(type_);
  return data_.bytes().subspan(static_cast<std::size_t>(offset(sequence)), count);
}

Result<> IndexedDataset::append(std::int64_t sequence, std::int32_t offset, std::int32_t count,
                                std::vector<std::int32_t>& to) const {
  const auto all = bytes(sequence);
  const std::size_t width = bytes_of(type_);
  check(offset >= 0 && count >= 0 && offset <= length(sequence) - count, "tokens of the sequence");
  const auto part = all.subspan(static_cast<std::size_t>(offset) * width,
                                static_cast<std::size_t>(count) * width);
  auto read = [&]() -> Result<> {
    switch (type_) {
      case TokenType::u8:
        return append_tokens<std::uint8_t>(part, to);
      case TokenType::i8:
        return append_tokens<std::int8_t>(part, to);
      case TokenType::i16:
        return append_tokens<std::int16_t>(part, to);
      case TokenType::u16:
        return append_tokens<std::uint16_t>(part, to);
      case TokenType::i32:
        return append_tokens<std::int32_t>(part, to);
      case TokenType::i64:
        return append_tokens<std::int64_t>(part, to);
      default:
        return fail(Errc::unsupported, cat("expected token ids, found ", to_string(type_)));
    }
  }();
  if (!read)
    return fail(read.error().code,
                cat(prefix_, ".bin: sequence ", sequence, ": ", read.error().what));
  return {};
}

Result<std::vector<std::int32_t>> IndexedDataset::sequence(std::int64_t sequence) const {
  std::vector<std::int32_t> out;
  RETURN_IF_ERROR(append(sequence, 0, length(sequence), out));
  return out;
}

}  // namespace troupe::engine::data::megatron
