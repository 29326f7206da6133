#include "engine/base/files/file_parts.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "engine/base/files/descriptor.h"
#include "engine/base/files/system_calls.h"
#include "engine/base/threads/progress.h"

namespace troupe {

Result<std::uint64_t> visit_file(const std::string& path,
                                 const std::function<void(std::span<const std::byte>)>& visit) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.open()) return system_error(path, "open for reading");
  RETURN_IF_ERROR(regular_file_size(file.get(), path));
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  std::uint64_t done = 0;
  for (;;) {
    const auto count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error(path, "read");
    if (count == 0) return done;
    visit(std::span(buffer).first(static_cast<std::size_t>(count)));
    done += static_cast<std::uint64_t>(count);
    progress::advance();
  }
}

int write_at(int file, std::span<const std::byte>& bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const auto count = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? errno : ENOSPC;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
    progress::advance();
  }
  return 0;
}

}  // namespace troupe
