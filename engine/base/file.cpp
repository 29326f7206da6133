#include "engine/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "engine/base/mapped_file_faults.h"
#include "engine/base/text.h"

namespace troupe {
namespace {

struct Descriptor {
  int fd = -1;
  explicit Descriptor(int value) : fd(value) {}
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() { close(); }
  int close() { return fd < 0 ? 0 : ::close(std::exchange(fd, -1)); }
};

tl::unexpected<Error> system_error(const std::string& path, std::string_view verb) {
  const int code = errno;
  return fail(code == ENOENT ? Errc::not_found : Errc::io,
              cat(path, ": cannot ", verb, ": ", std::strerror(code)));
}

// Opens for reading and refuses what is not a regular file: a FIFO would wait for ever, a device
// would never end.
Result<std::size_t> open_regular(const std::string& path, Descriptor& file) {
  file.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.fd < 0) return system_error(path, "open for reading");
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) return system_error(path, "examine");
  if (!S_ISREG(info.st_mode))
    return fail(Errc::io, cat(path, ": expected a regular file, found ",
                              S_ISDIR(info.st_mode) ? "a directory" : "a device or pipe"));
  return static_cast<std::size_t>(info.st_size);
}

Result<> write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const auto count = ::write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error(path, "write");
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  Descriptor file(-1);
  const auto size = open_regular(path, file);
  RETURN_IF_ERROR(size);
  if (*size > limit)
    return fail(Errc::bad_input, cat(path, ": ", *size, " bytes, at most ", limit, " are read"));
  std::string out(*size, '\0');
  std::size_t done = 0;
  while (done < out.size()) {
    const auto count = ::read(file.fd, out.data() + done, out.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error(path, "read");
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  out.resize(done);
  return out;
}

std::string read_proc_file(const std::string& path) {
  constexpr std::size_t maximum = std::size_t{16} << 20, step = 4096;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string out;
  std::size_t done = 0;
  while (file.fd >= 0 && done < maximum) {
    out.resize(done + step);
    const auto count = ::read(file.fd, out.data() + done, step);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  out.resize(done);
  return out;
}

Result<> write_file_durably(const std::string& path, std::string_view content) {
  const std::string temporary = cat(path, ".tmp-", ::getpid());
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file.fd < 0) return system_error(temporary, "create");
  auto written = write_all(file.fd, content, temporary);
  if (written && ::fsync(file.fd) != 0) written = system_error(temporary, "make durable");
  if (file.close() != 0 && written) written = system_error(temporary, "close");
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0)
    written = system_error(path, "replace");
  if (!written) {
    ::unlink(temporary.c_str());
    return written;
  }
  const auto parent = std::filesystem::path(path).parent_path().string();
  return sync_directory(parent.empty() ? "." : parent);
}

Result<> sync_directory(const std::string& path) {
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.fd < 0) return system_error(path, "open");
  if (::fsync(folder.fd) != 0) return system_error(path, "make durable");
  return {};
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  Descriptor file(-1);
  const auto size = open_regular(path, file);
  RETURN_IF_ERROR(size);
  if (*size == 0) return MappedFile({}, -1);
  void* start = ::mmap(nullptr, *size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (start == MAP_FAILED) return system_error(path, "map");
  const std::span bytes(static_cast<const std::byte*>(start), *size);
  return MappedFile(bytes, register_mapping(bytes, path));
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})), slot_(std::exchange(other.slot_, -1)) {
}
MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(slot_, other.slot_);
  return *this;
}
MappedFile::~MappedFile() {
  unregister_mapping(slot_);
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace troupe
