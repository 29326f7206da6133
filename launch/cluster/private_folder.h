// PrivateFolder: a folder for the sockets of a launch with access for its user only; removed by the
// destructor.
#pragma once

#include <string>

#include "engine/base/error.h"

namespace troupe::launch {

class PrivateFolder {
 public:
  /// Creates a new folder (mode 0700) under XDG_RUNTIME_DIR, or under TMPDIR or /tmp if that is
  /// missing or too long: the path of a socket has at most 107 bytes. Errc::io.
  static Result<PrivateFolder> make();
  PrivateFolder(PrivateFolder&& other) noexcept;
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  ~PrivateFolder();
  const std::string& path() const { return path_; }
  /// Creates a folder for one group inside: concurrent mpirun processes must not share the place of
  /// their files. Errc::io.
  Result<std::string> part(const std::string& name) const;

 private:
  explicit PrivateFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace troupe::launch
