#include "engine/checkpoint/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "engine/base/errors/check.h"
#include "engine/base/files/environment_error.h"
#include "engine/base/files/file.h"
#include "engine/base/files/file_parts.h"
#include "engine/base/files/space_wait.h"
#include "engine/base/text/text.h"

namespace troupe::engine::checkpoint {

tl::unexpected<Error> system_error(const std::string& path, std::string_view verb, int code) {
  return fail(os_error(code, cat(path, ": cannot ", verb)));
}

Result<OutputFile> OutputFile::create(const std::string& path) {
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  int fd = ::open(path.c_str(), flags, 0666);
  for (SpaceWait space(path); fd < 0 && space.again(errno);) fd = ::open(path.c_str(), flags, 0666);
  if (fd < 0) return system_error(path, "create");
  return OutputFile(path, fd, true);
}

Result<OutputFile> OutputFile::join(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0)
    return system_error(path,
                        "open, to write this rank's part of it (the ranks of a group share the "
                        "file system of the output directory)");
  return OutputFile(path, fd, false);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), created_(other.created_) {
}
OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(created_, other.created_);
  return *this;
}
OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  remove_created();
}

void OutputFile::remove_created() const {
  if (created_) ::unlink(path_.c_str());
}

Result<> OutputFile::write(std::span<const std::byte> bytes) {
  check(fd_ >= 0, "OutputFile: write after finish");
  SpaceWait space(path_);
  while (!bytes.empty()) {
    const auto count = ::write(fd_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && space.again(errno)) continue;
    if (count < 0) return system_error(path_, "write");
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

Result<> OutputFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  check(fd_ >= 0, "OutputFile: write after finish");
  SpaceWait space(path_);
  const std::size_t size = bytes.size();
  do {  // what was written is no longer part of `bytes`
    errno = troupe::write_at(fd_, bytes, offset + (size - bytes.size()));
  } while (errno != 0 && space.again(errno));
  if (errno != 0) return system_error(path_, "write");
  return {};
}

Result<> OutputFile::write(std::string_view text) {
  return write(std::as_bytes(std::span(text.data(), text.size())));
}

Result<> OutputFile::finish() {
  check(fd_ >= 0, "OutputFile: finished twice");
  if (::fsync(fd_) != 0) return system_error(path_, "make durable");
  if (::close(std::exchange(fd_, -1)) != 0) {
    auto error = system_error(path_, "close");
    remove_created();
    return error;
  }
  return {};
}

Result<> write_new_file(const std::string& path, std::string_view content) {
  auto file = OutputFile::create(path);
  RETURN_IF_ERROR(file);
  RETURN_IF_ERROR(file->write(content));
  return file->finish();
}

Result<> create_directory_durably(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code failed;
  std::vector<fs::path> parents;
  for (fs::path at = fs::absolute(directory, failed); !failed && !fs::exists(at, failed);) {
    const fs::path parent = at.parent_path();
    if (at.has_filename()) parents.push_back(parent);
    if (parent == at) break;
    at = parent;
  }
  fs::create_directories(directory, failed);
  if (failed) return fail(os_error(failed.value(), cat(directory, ": cannot create")));
  // A parent that cannot be read cannot be synchronized, but it can contain the directory.
  for (const fs::path& parent : parents) static_cast<void>(sync_directory(parent.string()));
  return {};
}

}  // namespace troupe::engine::checkpoint
