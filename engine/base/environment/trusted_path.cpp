#include "engine/base/environment/trusted_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "engine/base/files/file.h"
#include "engine/base/files/system_calls.h"
#include "engine/base/text/text.h"

namespace troupe {
namespace {

// Linux's overflow user: the owner of files whose user does not exist in this user namespace.
constexpr uid_t overflow_user = 65534;

// In a user namespace such as that of `unshare --map-root-user`, also root's files have that owner.
bool shows_unmapped_owners() {
  std::istringstream map(read_proc_file("/proc/self/uid_map"));
  for (std::uint64_t inside, outside, count; map >> inside >> outside >> count;)
    if (inside <= overflow_user && overflow_user < inside + count) return false;
  return true;
}

Result<> check_directory(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return system_error(path, "examine");
  if (!S_ISDIR(found.st_mode)) return fail(Errc::unsupported, cat(path, " is not a directory"));
  const bool trusted = found.st_uid == 0 || found.st_uid == ::geteuid() ||
                       (found.st_uid == overflow_user && shows_unmapped_owners());
  if (!trusted)
    return fail(Errc::unsupported, cat(path, " belongs to user ", found.st_uid, ", not to user ",
                                       ::geteuid(), " or root"));
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (found.st_mode & S_ISVTX) == 0)
    return fail(Errc::unsupported,
                cat("other users can write to ", path, "; remove the permission (chmod go-w)"));
  return {};
}

}  // namespace

Result<std::string> trusted_path(const std::string& path) {
  std::error_code failed;
  const auto real = std::filesystem::canonical(path, failed);
  if (failed)
    return fail(failed == std::errc::no_such_file_or_directory ? Errc::not_found : Errc::io,
                cat(path, ": ", failed.message()));
  for (auto each = real;; each = each.parent_path()) {
    RETURN_IF_ERROR(check_directory(each.string()));
    if (each == each.root_path()) return real.string();
  }
}

}  // namespace troupe
