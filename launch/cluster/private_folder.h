// PrivateFolder: a place for this launch's sockets that only its user can enter; removed at the
// end.
#pragma once

#include <string>

#include "engine/base/error.h"

namespace troupe::launch {

class PrivateFolder {
 public:
  /// Made anew (mode 0700) under XDG_RUNTIME_DIR, or TMPDIR or /tmp where that one is missing or
  /// too long: a socket's path has at most 107 bytes. One that a killed launch left behind is in
  /// nobody's way. Errc::io.
  static Result<PrivateFolder> make();
  PrivateFolder(PrivateFolder&& other) noexcept;
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  ~PrivateFolder();
  const std::string& path() const { return path_; }
  /// A folder within, of one group: mpiruns that make their files in one place at once get in each
  /// other's way. Errc::io.
  Result<std::string> part(const std::string& name) const;

 private:
  explicit PrivateFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace troupe::launch
