// One run per output directory: an exclusive lock that the kernel drops when its process ends,
// however it ends.
#pragma once

#include <string>

#include "engine/base/error.h"

namespace troupe::engine::checkpoint {

class DirectoryLock {
 public:
  /// Creates the directory when it is not there, and takes its lock. Errc::usage, naming the
  /// process that has it; Errc::io.
  static Result<DirectoryLock> take(const std::string& directory);
  /// In a child of the process that has taken the lock, and which takes its children with it when
  /// it ends: they may write too.
  static DirectoryLock held_by_launch(const std::string& directory) {
    return DirectoryLock(directory, -1);
  }
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
