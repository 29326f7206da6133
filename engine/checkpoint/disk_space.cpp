#include "engine/checkpoint/disk_space.h"

#include <sys/statvfs.h>

#include <limits>

#include "engine/base/text/text.h"

namespace troupe::engine::checkpoint {

namespace {
constexpr std::uint64_t mebibyte = 1u << 20;
}

std::uint64_t free_bytes(const std::string& directory) {
  struct statvfs info {};
  if (::statvfs(directory.c_str(), &info) != 0) return std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
}

std::string mebibytes(std::uint64_t bytes) {
  return cat(bytes / mebibyte + (bytes % mebibyte != 0), " MiB");
}

Result<> check_space(const std::string& directory, std::uint64_t needed, std::uint64_t free) {
  if (needed <= free) return {};
  return fail(Errc::io, cat("a checkpoint needs ", mebibytes(needed), ", ", free / mebibyte,
                            " MiB are free in ", directory,
                            "; remove files there, or choose another output"));
}

}  // namespace troupe::engine::checkpoint
