#include "engine/base/files/read_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "engine/base/text/text.h"

namespace troupe {
namespace {

Result<std::string> read_to_end(int fd, const std::string& path, std::size_t limit) {
  std::string out;
  std::array<char, 4096> part;
  for (;;) {
    const auto count = ::read(fd, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(Errc::io, cat(path, ": cannot read: ", std::strerror(errno)));
    if (count == 0) return out;
    out.append(part.data(), static_cast<std::size_t>(count));
    if (out.size() > limit)
      return fail(Errc::bad_input, cat(path, ": more than ", limit, " bytes"));
  }
}

}  // namespace

Result<std::string> read_stream(const std::string& path, std::size_t limit) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return fail(errno == ENOENT ? Errc::not_found : Errc::io,
                cat(path, ": cannot open for reading: ", std::strerror(errno)));
  auto text = read_to_end(fd, path, limit);
  ::close(fd);
  return text;
}

}  // namespace troupe
