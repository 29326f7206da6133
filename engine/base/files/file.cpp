#include "engine/base/files/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "engine/base/files/descriptor.h"
#include "engine/base/files/mapped_file_faults.h"
#include "engine/base/files/output_folder.h"
#include "engine/base/files/system_calls.h"

namespace troupe {
namespace {

// Opens a regular file for reading and returns its size.
Result<std::size_t> open_for_reading(const std::string& path, Descriptor& file) {
  file = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.open()) return system_error(path, "open for reading");
  return regular_file_size(file.get(), path);
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  Descriptor file;
  RETURN_IF_ERROR(open_for_reading(path, file));
  return read_whole(file.get(), path, limit);
}

std::string read_proc_file(const std::string& path) {
  constexpr std::size_t maximum = std::size_t{16} << 20, step = 4096;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string out;
  std::size_t done = 0;
  while (file.open() && done < maximum) {
    out.resize(done + step);
    const auto count = ::read(file.get(), out.data() + done, step);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  out.resize(done);
  return out;
}

Result<> write_file_durably(const std::string& path, std::string_view content) {
  const std::filesystem::path parts(path);
  const std::string parent = parts.parent_path().string();
  const auto folder = OutputFolder::open(parent.empty() ? "." : parent);
  RETURN_IF_ERROR(folder);
  return folder->replace(parts.filename().string(), content);
}

Result<> sync_directory(const std::string& path) {
  const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.open()) return system_error(path, "open");
  if (::fsync(folder.get()) != 0) return system_error(path, "make durable");
  return {};
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  Descriptor file;
  const auto size = open_for_reading(path, file);
  RETURN_IF_ERROR(size);
  if (*size == 0) return MappedFile({}, -1);
  void* start = ::mmap(nullptr, *size, PROT_READ, MAP_PRIVATE, file.get(), 0);
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
