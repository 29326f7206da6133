#include "engine/checkpoint/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "engine/base/environment_error.h"
#include "engine/base/text.h"
#include "engine/checkpoint/output_file.h"

namespace troupe::engine::checkpoint {
namespace {

// The process id in the lock file; other content is not shown.
std::string owner_of(int fd) {
  std::array<char, 24> text{};
  const auto count = ::pread(fd, text.data(), text.size(), 0);
  std::string digits;
  for (ssize_t i = 0; i < count && text[static_cast<std::size_t>(i)] >= '0' &&
                      text[static_cast<std::size_t>(i)] <= '9';
       ++i)
    digits += text[static_cast<std::size_t>(i)];
  return digits.empty() ? "another process" : "process " + digits;
}

}  // namespace

Result<DirectoryLock> DirectoryLock::acquire(const std::string& directory) {
  RETURN_IF_ERROR(create_directory_durably(directory));
  const std::string path = cat(directory, "/.lock");
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
  if (fd < 0) return fail(os_error(errno, cat(path, ": cannot open")));
  DirectoryLock lock(directory, fd);
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
