// OutputFolder: a directory that a run writes to, held by its descriptor. Files are created
// relative to the descriptor, and a symbolic link in the directory is never followed or created
// through: somebody else may have put it there, in a shared directory or in an unpacked archive.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/errors/error.h"
#include "engine/base/files/descriptor.h"

namespace troupe {

/// Permissions of new files.
enum class FileAccess {
  owner_only,  ///< files 0600 and folders 0700
  by_umask,    ///< files 0666 and folders 0777 without the bits of the umask
};
/// Names of the values in configurations, in the order of the enumerators.
constexpr std::array<std::string_view, 2> names_of(FileAccess) {
  return {"private", "umask"};
}

class OutputFolder {
 public:
  /// An existing directory. Links in `path` are followed, because the user named it. Errc::io,
  /// Errc::not_found.
  static Result<OutputFolder> open(const std::string& path,
                                   FileAccess access = FileAccess::by_umask);
  /// The subfolder `name`, which is created durably if it is missing. Errc::io, also if it is a
  /// symbolic link.
  Result<OutputFolder> folder(const std::string& name) const;

  const std::string& path() const { return path_; }
  /// The path of a file, for messages.
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }
  /// Whether there is anything called `name`, also a dangling link.
  bool contains(const std::string& name) const;

  /// A regular file for appending, created if it is missing. Errc::io.
  Result<Descriptor> append(const std::string& name) const;
  /// An existing regular file for reading and writing. Errc::io, Errc::not_found.
  Result<Descriptor> update(const std::string& name) const;
  /// The content of a regular file; "" if it is missing. Errc::io, Errc::bad_input (above 4 GiB).
  Result<std::string> read(const std::string& name) const;
  /// Writes a file durably through a temporary file: write, fsync, rename, fsync of the folder.
  /// After a crash the file has the old content or the new, never a mixture. Errc::io.
  Result<> replace(const std::string& name, std::string_view content) const;
  /// fsync of the folder: new, renamed and removed names survive a power failure. Errc::io.
  Result<> sync() const;
  /// Renames a file, replacing `to`. Errc::io.
  Result<> rename(const std::string& from, const std::string& to) const;

 private:
  OutputFolder(std::string path, FileAccess access, Descriptor folder)
      : path_(std::move(path)),
        access_(access),
        folder_(std::make_shared<Descriptor>(std::move(folder))) {}

  Result<Descriptor> open_regular(const std::string& name, int flags) const;
  unsigned file_mode() const { return access_ == FileAccess::owner_only ? 0600 : 0666; }

  std::string path_;
  FileAccess access_;
  std::shared_ptr<const Descriptor> folder_;
};

}  // namespace troupe
