#include "engine/base/memory/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "engine/base/environment/available_memory.h"
#include "engine/base/errors/check.h"
#include "engine/base/files/environment_error.h"
#include "engine/base/random/secret.h"
#include "engine/base/text/text.h"

namespace troupe {
namespace {

constexpr std::string_view prefix = "troupe-weights-";
constexpr std::size_t part_bytes = 1 << 22;
constexpr int immutable = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

tl::unexpected<Error> failed(int code, std::string_view what, std::size_t bytes) {
  Error error = os_error(code, cat("shared memory of ", bytes, " bytes: cannot ", what));
  if (code == ENOSPC) error.code = Errc::full;
  if (code == ENOSYS || code == EPERM || code == EOPNOTSUPP) error.code = Errc::unsupported;
  return fail(std::move(error.code), std::move(error.what));
}

// Whether /proc names the memory at `path`. Nothing is opened before: opening another file could
// wait or have an effect.
bool has_token(const std::string& path, const std::string& token) {
  std::array<char, 128> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  const std::string expected = cat("/memfd:", prefix, token, " (deleted)");
  return length > 0 &&
         std::string_view(target.data(), static_cast<std::size_t>(length)) == expected;
}

// The kernel would allocate until it has to end processes.
Result<> check_room(std::size_t bytes) {
  const std::uint64_t room = memory_available();
  if (room == 0 || bytes <= room / 10 * 9) return {};
  return fail(Errc::full, cat("shared memory of ", bytes,
                              " bytes: expected at most nine tenths of "
                              "the memory that is left, found ",
                              room, " bytes"));
}

}  // namespace

Result<std::unique_ptr<SharedMemory>> SharedMemory::create(std::size_t bytes) {
  RETURN_IF_ERROR(check_room(bytes));
  std::string token = random_token();
  const int file = ::memfd_create(cat(prefix, token).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return failed(errno, "create it", bytes);
  std::unique_ptr<SharedMemory> memory(new SharedMemory(file, std::move(token), bytes));
  return memory;
}

Result<std::shared_ptr<const SharedMemory>> SharedMemory::open(const SharedMemoryName& name,
                                                               std::size_t bytes) {
  const std::string path = cat("/proc/", name.process, "/fd/", name.file);
  if (!has_token(path, name.token))
    return fail(Errc::not_found, cat("shared memory: process ", name.process,
                                     " of this host does not have it; the processes run on "
                                     "different hosts or in different containers"));
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return failed(errno, "open it", bytes);
  std::shared_ptr<SharedMemory> memory(new SharedMemory(file, name.token, bytes));
  struct stat found {};
  if (::fstat(file, &found) != 0) return failed(errno, "read its size", bytes);
  if (found.st_size < 0 || static_cast<std::size_t>(found.st_size) != bytes)
    return fail(Errc::bad_input,
                cat("shared memory: expected ", bytes, " bytes, found ", found.st_size));
  if ((::fcntl(file, F_GET_SEALS) & immutable) != immutable)
    return fail(Errc::bad_input,
                "shared memory: expected memory that cannot change any more, found no seal");
  RETURN_IF_ERROR(memory->map());
  return memory;
}

SharedMemory::~SharedMemory() {
  if (writing_.valid()) writing_.wait();
  if (data_) ::munmap(const_cast<std::byte*>(data_), bytes_);
  ::close(file_);
}

Result<> SharedMemory::map() {
  void* const data = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file_, 0);
  if (data == MAP_FAILED) return failed(errno, "map it", bytes_);
  data_ = static_cast<const std::byte*>(data);
  return {};
}

// Without a mapping: pages that are written whole are neither cleared nor faulted in, which halves
// the time.
Result<> SharedMemory::write(std::span<const std::byte> next) const {
  while (!next.empty()) {
    const ssize_t count = ::write(file_, next.data(), next.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return failed(count == 0 ? ENOSPC : errno, "write to it", bytes_);
    next = next.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

Result<> SharedMemory::finish_writing() {
  return writing_.valid() ? writing_.get() : Result<>();
}

// The kernel's allocation of the pages takes longer than the checksums of the caller.
Result<> SharedMemory::append(std::span<const std::byte> next) {
  check(next.size() <= bytes_ - appended_, "SharedMemory: more bytes than it was created for");
  appended_ += next.size();
  while (!next.empty()) {
    const auto part = next.first(std::min(next.size(), part_bytes));
    next = next.subspan(part.size());
    next_.assign(part.begin(), part.end());
    RETURN_IF_ERROR(finish_writing());
    std::swap(next_, being_written_);
    writing_ = std::async([this] { return write(being_written_); });
  }
  return {};
}

// Older kernels map sealed memory only through a descriptor that cannot write.
Result<> SharedMemory::seal() {
  check(appended_ == bytes_, "SharedMemory: sealed before all of it was written");
  RETURN_IF_ERROR(finish_writing());
  next_ = being_written_ = {};
  if (::fcntl(file_, F_ADD_SEALS, immutable | F_SEAL_SEAL) != 0)
    return failed(errno, "seal it", bytes_);
  const int read_only = ::open(cat("/proc/self/fd/", file_).c_str(), O_RDONLY | O_CLOEXEC);
  if (read_only < 0) return failed(errno, "open it", bytes_);
  ::close(std::exchange(file_, read_only));
  return map();
}

SharedMemoryName SharedMemory::name() const {
  return {::getpid(), file_, token_, bytes_};
}

}  // namespace troupe
