#include "transports/mpi/segment_folder.h"

#include <fcntl.h>

#include <array>
#include <cstdlib>

#include "engine/base/files/descriptor.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"

namespace troupe::transports::mpi {
namespace {

namespace fs = std::filesystem;

/// The parameter of Open MPI 4, and its name in Open MPI 5.
constexpr std::array<const char*, 2> variables{"OMPI_MCA_btl_vader_backing_directory",
                                               "OMPI_MCA_btl_sm_backing_directory"};

}  // namespace

std::optional<SegmentFolder> SegmentFolder::create() {
  for (const char* variable : variables)
    if (std::getenv(variable)) return std::nullopt;
  auto folder = PrivateFolder::make();
  auto path = folder ? folder->part("memory") : fail(folder.error());
  if (!path) {
    log_warning(
        cat("the shared memory of this group has a name in /dev/shm that other users can "
            "predict: ",
            path.error().what));
    return std::nullopt;
  }
  for (const char* variable : variables) ::setenv(variable, path->c_str(), 1);
  return SegmentFolder(std::move(*folder), std::move(*path));
}

void SegmentFolder::remove_files() {
  std::error_code failed;
  for (fs::directory_iterator at(path_, failed), end; !failed && at != end; at.increment(failed))
    removed_.push_back(at->path());
  for (const fs::path& file : removed_) fs::remove(file, failed);
}

void SegmentFolder::restore_files() const {
  for (const fs::path& file : removed_)
    Descriptor(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
}

}  // namespace troupe::transports::mpi
