#include "engine/checkpoint/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <set>
#include <sstream>
#include <utility>

#include "engine/base/files/environment_error.h"
#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/output_file.h"

namespace troupe::engine::checkpoint {
namespace {

// The processes that have locked the file, from lines of /proc/locks such as
// "1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF", where the last number of the fifth word is the
// inode. The content of the file is no evidence: any process that opens it can lock it. With two
// files of the same inode number on different file systems, there are several.
std::set<std::string> owners_of(const struct stat& file) {
  std::set<std::string> owners;
  std::istringstream lines(read_proc_file("/proc/locks"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number, kind, mode, access, process, place;
    words >> number >> kind >> mode >> access >> process >> place;
    const auto inode = place.rfind(':') + 1;
    if (kind == "FLOCK" && place.substr(inode) == std::to_string(file.st_ino))
      owners.insert(process);
  }
  return owners;
}

// The only one of them; 0: one of another PID namespace, which has the number 0 or -1, or there are
// several.
std::int64_t process_of(const std::set<std::string>& owners) {
  return owners.size() == 1 ? std::max(0L, std::strtol(owners.begin()->c_str(), nullptr, 10)) : 0;
}

std::string owner_of(int fd) {
  struct stat file {};
  const std::int64_t process = ::fstat(fd, &file) == 0 ? process_of(owners_of(file)) : 0;
  return process > 0 ? cat("process ", process) : "another process";
}

}  // namespace

Result<DirectoryLock> DirectoryLock::acquire(const std::string& directory) {
  RETURN_IF_ERROR(create_directory_durably(directory));
  const std::string path = cat(directory, "/.lock");
  // Only its user can open the file: any process that opens it can lock it.
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (fd < 0) return fail(os_error(errno, cat(path, ": cannot open")));
  DirectoryLock lock(directory, fd);
  static_cast<void>(::fchmod(fd, 0600));  // of an earlier version; fails on a file of another user
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail(os_error(errno, cat(path, ": cannot lock")));
    return fail(
        Errc::usage,
        cat(directory, ": ", owner_of(fd),
            " is writing to this output directory; wait for it to end or choose another output"));
  }
  const std::string pid = cat(::getpid(), "\n");
  if (::ftruncate(fd, 0) != 0 ||
      ::pwrite(fd, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size()))
    return fail(os_error(errno, cat(path, ": cannot write")));
  return lock;
}

std::optional<std::int64_t> DirectoryLock::owner(const std::string& directory) {
  struct stat file {};
  if (::stat(cat(directory, "/.lock").c_str(), &file) != 0) return std::nullopt;
  const auto owners = owners_of(file);
  if (owners.empty()) return std::nullopt;
  return process_of(owners);
}

DirectoryLock::DirectoryLock(DirectoryLock&& other) noexcept
    : directory_(std::move(other.directory_)), fd_(std::exchange(other.fd_, -1)) {
}
DirectoryLock& DirectoryLock::operator=(DirectoryLock&& other) noexcept {
  std::swap(directory_, other.directory_);
  std::swap(fd_, other.fd_);
  return *this;
}
DirectoryLock::~DirectoryLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace troupe::engine::checkpoint
