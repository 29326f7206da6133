// PrivateFolder: a folder for the sockets of a launch, or for the shared memory of a rank, with
// access for its user only; removed by the destructor.
#pragma once

#include <string>

#include "engine/base/errors/error.h"
#include "engine/base/files/descriptor.h"

namespace troupe {

class PrivateFolder {
 public:
  /// Creates a new folder (mode 0700) under XDG_RUNTIME_DIR, or under TMPDIR or /tmp if that is
  /// missing, too long (the path of a socket has at most 107 bytes) or, with a warning, not a
  /// trusted path. Removes the folders that killed processes of this user have left there.
  /// Errc::io.
  static Result<PrivateFolder> make();
  PrivateFolder(PrivateFolder&& other) noexcept;
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  /// Removes the content through the descriptor, and the folder if the path still names it.
  ~PrivateFolder();
  const std::string& path() const { return path_; }
  /// Creates a folder for one group inside: concurrent mpirun processes must not share the place of
  /// their files. Errc::io, also if the path no longer names this folder.
  Result<std::string> part(const std::string& name) const;

 private:
  PrivateFolder(std::string path, Descriptor folder, Descriptor lock)
      : path_(std::move(path)), folder_(std::move(folder)), lock_(std::move(lock)) {}
  static Result<PrivateFolder> make_in(const std::string& place);

  std::string path_;
  Descriptor folder_, lock_;  // the kernel releases the lock of a killed process
};

}  // namespace troupe
