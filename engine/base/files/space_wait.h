// SpaceWait: writes of a run that find the disk full are tried again for a limited time, so that a
// disk on which space is made does not end the run.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace troupe {

/// From now on each SpaceWait of this process waits at most `longest` (default: not at all).
/// `notify` is called with a sentence when the first of them begins to wait, and when the last of
/// them has ended.
void wait_for_disk_space(std::chrono::milliseconds longest,
                         std::function<void(const std::string&)> notify);

/// Whether the errno value says that a disk, or a quota of it, is full.
bool is_disk_full(int code);

/// One operation that may be repeated.
class SpaceWait {
 public:
  /// `path`: the file, for the message; outlives it.
  explicit SpaceWait(const std::string& path) : path_(path) {}
  ~SpaceWait();
  SpaceWait(const SpaceWait&) = delete;
  SpaceWait& operator=(const SpaceWait&) = delete;

  /// After the operation has failed with the errno value `code`: true, a moment later, if it is to
  /// be tried again. errno is unchanged.
  bool again(int code);

 private:
  const std::string& path_;
  std::chrono::steady_clock::time_point began_{};
  bool waiting_ = false;
};

}  // namespace troupe
