// ZipWriter: zip archives of stored entries whose bytes begin at multiples of 64 bytes, as torch
// maps them. Sizes and offsets of 4 GiB and more stand in zip64 fields.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/output_file.h"

namespace troupe::engine::checkpoint {

class ZipWriter {
 public:
  /// Errc::io; existing files are never overwritten.
  static Result<ZipWriter> create(const std::string& path);

  /// Writes an entry. Names must differ. Errc::io.
  Result<> add(const std::string& name, std::span<const std::byte> bytes);
  /// Writes the directory and makes the file durable. Without this call the file is removed.
  Result<> finish();

 private:
  struct Entry {
    std::string name;
    std::uint64_t offset = 0, size = 0;
    std::uint32_t crc = 0;
  };
  explicit ZipWriter(OutputFile file) : file_(std::move(file)) {}
  Result<> write(std::string_view bytes);

  OutputFile file_;
  std::uint64_t at_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace troupe::engine::checkpoint
