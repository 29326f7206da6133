// DirectoryLock: an exclusive lock on an output directory. The kernel releases it when the process
// ends, however it ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/errors/error.h"

namespace troupe::engine::checkpoint {

class DirectoryLock {
 public:
  /// Creates the directory if necessary and acquires its lock. Errc::usage, naming the process that
  /// holds it; Errc::io.
  static Result<DirectoryLock> acquire(const std::string& directory);
  /// The lock in a child of the process that acquired it, which terminates its children when it
  /// ends.
  static DirectoryLock inherited(const std::string& directory) {
    return DirectoryLock(directory, -1);
  }
  /// The process that holds the lock of a directory, without acquiring it; 0: one of another PID
  /// namespace; nullopt: none.
  static std::optional<std::int64_t> owner(const std::string& directory);
  DirectoryLock(DirectoryLock&& other) noexcept;
  DirectoryLock& operator=(DirectoryLock&& other) noexcept;
  DirectoryLock(const DirectoryLock&) = delete;
  ~DirectoryLock();

  const std::string& directory() const { return directory_; }

 private:
  DirectoryLock(std::string directory, int fd) : directory_(std::move(directory)), fd_(fd) {}
  std::string directory_;
  int fd_ = -1;
};

}  // namespace troupe::engine::checkpoint
