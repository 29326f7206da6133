// Scratch: a temporary folder that the destructor removes.
#pragma once

#include <filesystem>
#include <string>

namespace troupe::benchmarks {

class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace troupe::benchmarks
