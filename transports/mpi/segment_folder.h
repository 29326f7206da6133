// SegmentFolder: where Open MPI creates the files of the memory that the ranks of a host share. Its
// default is /dev/shm, under names that any user can predict and occupy, and that outlive a kill.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/environment/private_folder.h"

namespace troupe::transports::mpi {

/// A private folder of this rank. The files have a name only while the group starts and while it
/// ends, so that the kernel frees the memory of a killed group.
class SegmentFolder {
 public:
  /// Sets the environment variables that name the folder to Open MPI; call it before MPI_Init.
  /// nullopt if they are set already, or, with a warning, if there is no place for a folder.
  static std::optional<SegmentFolder> create();

  /// Removes the files, which all ranks of this host have mapped.
  void remove_files();
  /// Creates empty files of the same names, because MPI_Finalize prints an error if it cannot
  /// remove them.
  void restore_files() const;

 private:
  SegmentFolder(PrivateFolder folder, std::string path)
      : folder_(std::move(folder)), path_(std::move(path)) {}

  PrivateFolder folder_;
  std::string path_;  // a part of it
  std::vector<std::filesystem::path> removed_;
};

}  // namespace troupe::transports::mpi
