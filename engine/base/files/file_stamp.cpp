#include "engine/base/files/file_stamp.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "engine/base/text/text.h"

namespace troupe {
namespace {

std::int64_t nanoseconds(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

Result<FileStamp> stamp_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    return fail(errno == ENOENT ? Errc::not_found : Errc::io,
                cat(path, ": cannot examine: ", std::strerror(errno)));
  return FileStamp{info.st_dev, info.st_ino, static_cast<std::uint64_t>(info.st_size),
                   nanoseconds(info.st_mtim), nanoseconds(info.st_ctim)};
}

}  // namespace troupe
