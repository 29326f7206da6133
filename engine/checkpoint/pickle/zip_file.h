// Zip archives whose entries are stored without compression, as torch.save writes them (PKWARE
// APPNOTE.TXT 6.3.9, sections 4.3.7, 4.3.12, 4.3.14 to 4.3.16 and 4.5.3). Every count, size and
// offset is checked before anything of that size is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/files/file.h"

namespace troupe::engine::checkpoint {

struct ZipEntry {
  std::string name;
  std::uint64_t begin = 0, size = 0;  ///< of its bytes in the file
  std::uint32_t crc = 0;              ///< CRC-32 of its bytes
};

/// An open archive, mapped read-only.
class ZipFile {
 public:
  static constexpr std::uint64_t entry_limit = 1u << 20;

  /// Errc::not_found, io; Errc::corrupt (no archive, truncated, overlapping the directory, repeated
  /// names); Errc::unsupported (compressed or encrypted entries, more than entry_limit of them).
  static Result<ZipFile> open(const std::string& path);

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return file_.bytes().size(); }  ///< bytes of the file
  const std::vector<ZipEntry>& entries() const { return entries_; }
  /// The entry of that name, or nullptr.
  const ZipEntry* find(std::string_view name) const;
  /// The bytes of an entry, not compared with its checksum.
  std::span<const std::byte> bytes(const ZipEntry& entry) const;
  /// The bytes of an entry. Errc::corrupt when they do not have its checksum.
  Result<std::span<const std::byte>> verified(const ZipEntry& entry) const;

 private:
  ZipFile(std::string path, MappedFile file) : path_(std::move(path)), file_(std::move(file)) {}
  Result<> read_directory();

  std::string path_;
  MappedFile file_;
  std::vector<ZipEntry> entries_;
  // Keys view the names inside entries_, whose storage never moves.
  std::unordered_map<std::string_view, std::size_t> index_;
};

/// CRC-32 (ISO 3309) of any number of bytes.
std::uint32_t zip_checksum(std::span<const std::byte> bytes);

}  // namespace troupe::engine::checkpoint
