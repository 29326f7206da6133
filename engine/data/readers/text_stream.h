// TextStream: reads the text of a file through a window, so that the file need not fit into memory.
// gzip files are decompressed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/errors/error.h"

namespace troupe::engine::data {

/// Source of the bytes of a TextStream.
class ByteFeed {
 public:
  virtual ~ByteFeed() = default;
  /// Reads the next bytes, at most `size` of them; returns 0 at the end. Errc::io, corrupt.
  virtual Result<std::size_t> read(char* to, std::size_t size) = 0;
  /// Returns to the first byte.
  virtual Result<> rewind() = 0;
};

/// Limits on decompressed data, against decompression bombs. Plain text compresses to a tenth, rows
/// of one number to a hundredth.
constexpr std::size_t expansion_free = 64u << 20;  ///< bytes that are always allowed
/// Maximum bytes of text per byte of the file, beyond expansion_free.
constexpr std::size_t expansion_limit = 300;

/// Bytes that a reader peeks at before it knows that it needs more.
constexpr std::size_t first_look = 64u << 10;

bool is_gzip(std::string_view first_bytes);

class TextStream {
 public:
  /// Errc::not_found, io.
  static Result<TextStream> open(const std::string& path);

  /// Returns the text from the current position: at least `bytes` of it, fewer only at the end.
  /// Valid until the next call. Errc::io; Errc::corrupt for damaged compression, or one that
  /// expands beyond the limits.
  Result<std::string_view> peek(std::size_t bytes);
  /// Advances by `bytes`, at most the number that peek() returned.
  void skip(std::size_t bytes) { at_ += bytes; }
  /// Returns to the beginning, after a byte order mark.
  Result<> rewind();

 private:
  explicit TextStream(std::unique_ptr<ByteFeed> feed) : feed_(std::move(feed)) {}
  std::unique_ptr<ByteFeed> feed_;
  std::string window_;
  std::size_t at_ = 0;
  bool ended_ = false;
};

/// Returns the whole text of a compressed file. Errc::unsupported if it is longer than `limit`
/// bytes.
Result<std::string> unpack(const std::string& path, std::size_t limit);

}  // namespace troupe::engine::data
