#include "engine/base/files/system_calls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "engine/base/files/environment_error.h"
#include "engine/base/files/space_wait.h"
#include "engine/base/text/text.h"

namespace troupe {

tl::unexpected<Error> system_error(const std::string& path, std::string_view verb) {
  const int code = errno;
  Error error = os_error(code, cat(path, ": cannot ", verb));
  if (code == ENOENT) error.code = Errc::not_found;
  return fail(std::move(error));
}

Result<std::size_t> regular_file_size(int file, const std::string& path) {
  struct stat info {};
  if (::fstat(file, &info) != 0) return system_error(path, "examine");
  if (!S_ISREG(info.st_mode))
    return fail(Errc::io, cat(path, ": expected a regular file, found ",
                              S_ISDIR(info.st_mode) ? "a directory" : "a device or pipe"));
  return static_cast<std::size_t>(info.st_size);
}

Result<std::string> read_whole(int file, const std::string& path, std::size_t limit) {
  const auto size = regular_file_size(file, path);
  RETURN_IF_ERROR(size);
  if (*size > limit)
    return fail(Errc::bad_input, cat(path, ": ", *size, " bytes, at most ", limit, " are read"));
  std::string out(*size, '\0');
  std::size_t done = 0;
  while (done < out.size()) {
    const auto count = ::read(file, out.data() + done, out.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error(path, "read");
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  out.resize(done);
  return out;
}

Result<> write_whole(int file, std::string_view content, const std::string& path, OnFullDisk full) {
  SpaceWait space(path);
  while (!content.empty()) {
    const auto count = ::write(file, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && full == OnFullDisk::wait && space.again(errno)) continue;
    if (count < 0) return system_error(path, "write");
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

void open_standard_streams() {
  // open() returns the lowest free descriptor, which is the closed one: those below it are open.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      static_cast<void>(::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY));
}

}  // namespace troupe
