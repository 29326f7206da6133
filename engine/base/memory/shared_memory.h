// SharedMemory: memory that processes of one host and user read together (memfd). It is mapped when
// all of it was written, and cannot be truncated then, so reading it never causes SIGBUS; its size
// is not limited by /dev/shm. Another process finds it by name in /proc, without a file system or a
// socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "engine/base/errors/error.h"

namespace troupe {

/// Where another process finds the memory: descriptor `file` of process `process`, whose random
/// `token` no other file has.
struct SharedMemoryName {
  std::int64_t process = 0;
  std::int32_t file = -1;
  std::string token;        ///< 32 hexadecimal digits
  std::uint64_t bytes = 0;  ///< size of the memory
  bool operator==(const SharedMemoryName&) const = default;
};
inline auto fields(SharedMemoryName& n) {
  return std::tie(n.process, n.file, n.token, n.bytes);
}

class SharedMemory {
 public:
  /// Memory of `bytes` bytes, at least 1, to be written by append(). Errc::full: the machine has
  /// less; io, unsupported: the system allows no such memory.
  static Result<std::unique_ptr<SharedMemory>> create(std::size_t bytes);
  /// Maps the memory of another process, or of this one, read-only. Errc::not_found: no process of
  /// this host has it; bad_input: another size than `bytes`, or its owner could still change it;
  /// io.
  static Result<std::shared_ptr<const SharedMemory>> open(const SharedMemoryName& name,
                                                          std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;

  /// Writes the next bytes; more than `bytes` in all are a Bug. They are copied, and written by a
  /// thread of its own while the caller computes the next ones; an error is that of these bytes or
  /// of earlier ones. Errc::full, io.
  Result<> append(std::span<const std::byte> next);
  /// Makes the memory immutable, for this process too, and ready to be opened; all of it must have
  /// been written.
  Result<> seal();
  /// After seal() or open().
  std::span<const std::byte> bytes() const { return {data_, bytes_}; }
  /// For open(), while this object exists.
  SharedMemoryName name() const;

 private:
  SharedMemory(int file, std::string token, std::size_t bytes)
      : file_(file), token_(std::move(token)), bytes_(bytes) {}
  Result<> map();
  Result<> write(std::span<const std::byte> next) const;
  /// Waits for the bytes that are being written.
  Result<> finish_writing();

  int file_;
  std::string token_;
  std::size_t bytes_, appended_ = 0;
  const std::byte* data_ = nullptr;
  std::vector<std::byte> next_, being_written_;
  std::future<Result<>> writing_;
};

}  // namespace troupe
