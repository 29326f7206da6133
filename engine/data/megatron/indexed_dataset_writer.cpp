#include "engine/data/megatron/indexed_dataset_writer.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <type_traits>

#include "engine/base/errors/check.h"
#include "engine/base/files/system_calls.h"
#include "engine/base/text/text.h"

namespace troupe::engine::data::megatron {
namespace {

constexpr std::size_t block_bytes = 1u << 20;
/// The entry of PREFIX.idx.partial that ends a document; any other is the length of a sequence.
constexpr std::int32_t end_of_document = -1;

template <class T>
std::string_view text_of(const T* values, std::size_t count) {
  return {reinterpret_cast<const char*>(values), count * sizeof(T)};
}

template <class T>
Result<> pack(std::span<const std::int32_t> tokens, std::string& to) {
  std::size_t at = to.size();
  to.resize(at + tokens.size() * sizeof(T));
  for (const std::int32_t token : tokens) {
    if constexpr (sizeof(T) < sizeof(std::int32_t) || std::is_unsigned_v<T>)
      if (token < std::int64_t{std::numeric_limits<T>::min()} ||
          token > std::int64_t{std::numeric_limits<T>::max()})
        return fail(Errc::bad_input, cat("token ", token, " does not fit into ", 8 * sizeof(T),
                                         std::is_unsigned_v<T> ? " unsigned bits" : " bits"));
    const T value = static_cast<T>(token);
    std::memcpy(to.data() + at, &value, sizeof value);
    at += sizeof value;
  }
  return {};
}

Result<> pack(TokenType type, std::span<const std::int32_t> tokens, std::string& to) {
  switch (type) {
    case TokenType::u8:
      return pack<std::uint8_t>(tokens, to);
    case TokenType::i8:
      return pack<std::int8_t>(tokens, to);
    case TokenType::i16:
      return pack<std::int16_t>(tokens, to);
    case TokenType::u16:
      return pack<std::uint16_t>(tokens, to);
    case TokenType::i32:
      return pack<std::int32_t>(tokens, to);
    case TokenType::i64:
      return pack<std::int64_t>(tokens, to);
    default:
      return fail(Errc::unsupported, cat("cannot store tokens as ", to_string(type)));
  }
}

}  // namespace

// Never through a symbolic link, which somebody else may have put there. The lock ends with the
// process.
Result<> IndexedDatasetWriter::Appended::open() {
  file = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!file.open()) return system_error(path, "open for writing");
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(Errc::usage, cat(path, ": another process writes this file"));
  return {};
}

Result<> IndexedDatasetWriter::Appended::truncate(std::int64_t from) {
  const auto size = regular_file_size(file.get(), path);
  RETURN_IF_ERROR(size);
  if (static_cast<std::int64_t>(*size) < from)
    return fail(Errc::corrupt,
                cat(path, ": expected at least the ", from,
                    " bytes that were written before, found ", *size, "; remove it to start over"));
  if (::ftruncate(file.get(), from) != 0) return system_error(path, "truncate");
  if (::lseek(file.get(), from, SEEK_SET) < 0) return system_error(path, "seek in");
  bytes = from;
  return {};
}

Result<> IndexedDatasetWriter::Appended::append(std::string_view text) {
  buffer += text;
  bytes += static_cast<std::int64_t>(text.size());
  return buffer.size() < block_bytes ? Result<>() : flush();
}

Result<> IndexedDatasetWriter::Appended::flush() {
  const auto written = write_whole(file.get(), buffer, path);
  buffer.clear();
  return written;
}

Result<> IndexedDatasetWriter::Appended::sync() {
  RETURN_IF_ERROR(flush());
  if (::fsync(file.get()) != 0) return system_error(path, "make durable");
  return {};
}

Result<IndexedDatasetWriter> IndexedDatasetWriter::open(const std::string& prefix, TokenType type,
                                                        Position from) {
  if (type == TokenType::f32 || type == TokenType::f64)
    return fail(Errc::unsupported, cat(prefix, ": cannot store tokens as ", to_string(type)));
  IndexedDatasetWriter out(prefix, type);
  RETURN_IF_ERROR(out.data_.open());
  RETURN_IF_ERROR(out.entries_.open());
  const bool replaces = std::remove((prefix + ".idx").c_str()) == 0;
  if (!replaces && errno != ENOENT) return system_error(prefix + ".idx", "remove");
  // Before the data changes: a power failure would otherwise leave the old index beside new data.
  if (replaces) {
    const std::string parent = std::filesystem::path(prefix).parent_path().string();
    RETURN_IF_ERROR(sync_directory(parent.empty() ? "." : parent));
  }
  RETURN_IF_ERROR(out.data_.truncate(from.bytes));
  RETURN_IF_ERROR(out.entries_.truncate(from.entries * 4));
  RETURN_IF_ERROR(out.read_entries(from));
  return out;
}

Result<> IndexedDatasetWriter::read_entries(Position from) {
  if (from.entries == 0 && from.bytes == 0) return {};
  const auto text = read_file(entries_.path, std::numeric_limits<std::size_t>::max());
  RETURN_IF_ERROR(text);
  for (std::size_t at = 0; at + 4 <= text->size(); at += 4) {
    std::int32_t entry;
    std::memcpy(&entry, text->data() + at, 4);
    if (entry < end_of_document)
      return fail(Errc::corrupt, cat(entries_.path, ": expected lengths, found ", entry,
                                     "; remove it to start over"));
    count(entry);
  }
  if (tokens_ * static_cast<std::int64_t>(bytes_of(type_)) != from.bytes)
    return fail(Errc::corrupt,
                cat(entries_.path, ": its lengths are ", tokens_, " tokens, but ", data_.path,
                    " has ", from.bytes, " bytes; remove both to start over"));
  return {};
}

void IndexedDatasetWriter::count(std::int32_t entry) {
  if (entry == end_of_document) {
    documents_.push_back(sequences());
  } else {
    lengths_.push_back(entry);
    tokens_ += entry;
  }
}

Result<> IndexedDatasetWriter::add_entry(std::int32_t entry) {
  count(entry);
  return entries_.append(text_of(&entry, 1));
}

Result<> IndexedDatasetWriter::add_sequence(std::span<const std::int32_t> tokens) {
  if (tokens.size() > std::size_t{std::numeric_limits<std::int32_t>::max()})
    return fail(Errc::bad_input, cat("a sequence of ", tokens.size(), " tokens is too long"));
  std::string packed;
  RETURN_IF_ERROR(pack(type_, tokens, packed));
  RETURN_IF_ERROR(data_.append(packed));
  return add_entry(static_cast<std::int32_t>(tokens.size()));
}

Result<> IndexedDatasetWriter::end_document() {
  return add_entry(end_of_document);
}

Result<> IndexedDatasetWriter::add_dataset(const IndexedDataset& other) {
  if (other.type() != type_)
    return fail(Errc::usage, cat(other.prefix(), ".idx: expected the type of the datasets before, ",
                                 to_string(type_), ", found ", to_string(other.type())));
  for (std::int64_t document = 0; document < other.documents(); ++document) {
    for (auto i = other.first_sequence(document); i < other.first_sequence(document + 1); ++i) {
      const auto bytes = other.bytes(i);
      RETURN_IF_ERROR(data_.append(text_of(bytes.data(), bytes.size())));
      RETURN_IF_ERROR(add_entry(other.length(i)));
    }
    RETURN_IF_ERROR(end_document());
  }
  return {};
}

Result<IndexedDatasetWriter::Position> IndexedDatasetWriter::sync() {
  RETURN_IF_ERROR(data_.sync());
  RETURN_IF_ERROR(entries_.sync());
  return Position{.bytes = data_.bytes, .entries = entries_.bytes / 4};
}

std::string IndexedDatasetWriter::index() const {
  std::string out(index_magic);
  const auto put = [&out](auto value) { out += text_of(&value, 1); };
  put(index_version);
  put(static_cast<std::uint8_t>(type_));
  put(static_cast<std::uint64_t>(lengths_.size()));
  put(static_cast<std::uint64_t>(documents_.size()));
  out.reserve(out.size() + lengths_.size() * 12 + documents_.size() * 8);
  out += text_of(lengths_.data(), lengths_.size());
  std::int64_t at = 0;
  for (const std::int32_t length : lengths_) {
    put(at);
    at += length * static_cast<std::int64_t>(bytes_of(type_));
  }
  out += text_of(documents_.data(), documents_.size());
  return out;
}

Result<> IndexedDatasetWriter::write_index() {
  RETURN_IF_ERROR(data_.sync());
  return write_file_durably(prefix_ + ".idx", index());
}

Result<> IndexedDatasetWriter::remove_entries() {
  if (std::remove(entries_.path.c_str()) != 0) return system_error(entries_.path, "remove");
  return {};
}

Result<> IndexedDatasetWriter::finish() {
  RETURN_IF_ERROR(write_index());
  return remove_entries();
}

}  // namespace troupe::engine::data::megatron
