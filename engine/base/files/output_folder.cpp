#include "engine/base/files/output_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cerrno>

#include "engine/base/files/system_calls.h"
#include "engine/base/text/text.h"

namespace troupe {
namespace {

// Of open() with O_NOFOLLOW: ELOOP for a link (ENOTDIR with O_DIRECTORY).
tl::unexpected<Error> open_error(int folder, const std::string& name, const std::string& path,
                                 std::string_view verb) {
  const int code = errno;
  struct stat found {};
  if ((code == ELOOP || code == ENOTDIR) &&
      ::fstatat(folder, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(found.st_mode))
    return fail(Errc::io, cat(path, ": is a symbolic link, which is not followed here; remove it"));
  errno = code;
  return system_error(path, verb);
}

}  // namespace

Result<OutputFolder> OutputFolder::open(const std::string& path, FileAccess access) {
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.open()) return system_error(path, "open");
  return OutputFolder(path, access, std::move(folder));
}

Result<OutputFolder> OutputFolder::folder(const std::string& name) const {
  const std::string path = path_of(name);
  const mode_t mode = access_ == FileAccess::owner_only ? 0700 : 0777;
  const bool created = ::mkdirat(folder_->get(), name.c_str(), mode) == 0;
  if (!created && errno != EEXIST) return system_error(path, "create");
  if (created) RETURN_IF_ERROR(sync());
  Descriptor folder(
      ::openat(folder_->get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.open()) return open_error(folder_->get(), name, path, "open");
  return OutputFolder(path, access_, std::move(folder));
}

bool OutputFolder::contains(const std::string& name) const {
  struct stat found {};
  return ::fstatat(folder_->get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<Descriptor> OutputFolder::open_regular(const std::string& name, int flags) const {
  const std::string path = path_of(name);
  // O_NONBLOCK: opening a FIFO would wait.
  Descriptor file(::openat(folder_->get(), name.c_str(),
                           flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, file_mode()));
  if (!file.open())
    return open_error(folder_->get(), name, path,
                      (flags & O_CREAT) != 0 ? "open for writing" : "open for reading");
  RETURN_IF_ERROR(regular_file_size(file.get(), path));
  return file;
}

Result<Descriptor> OutputFolder::append(const std::string& name) const {
  auto file = open_regular(name, O_WRONLY | O_CREAT | O_APPEND);
  // A file of an earlier run may be readable by others.
  struct stat found {};
  if (file && access_ == FileAccess::owner_only && ::fstat(file->get(), &found) == 0 &&
      (found.st_mode & 0077) != 0)
    static_cast<void>(::fchmod(file->get(), found.st_mode & 0700));
  return file;
}

Result<Descriptor> OutputFolder::update(const std::string& name) const {
  return open_regular(name, O_RDWR);
}

Result<std::string> OutputFolder::read(const std::string& name) const {
  if (!contains(name)) return std::string();
  const auto file = open_regular(name, O_RDONLY);
  RETURN_IF_ERROR(file);
  return read_whole(file->get(), path_of(name), std::size_t{1} << 32);
}

Result<> OutputFolder::replace(const std::string& name, std::string_view content) const {
  const std::string temporary = cat(name, ".tmp-", ::getpid()), path = path_of(temporary);
  const int folder = folder_->get();
  ::unlinkat(folder, temporary.c_str(), 0);  // left by a killed process, or put there
  Descriptor file(::openat(folder, temporary.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, file_mode()));
  if (!file.open()) return system_error(path, "create");
  auto written = write_whole(file.get(), content, path);
  if (written && ::fsync(file.get()) != 0) written = system_error(path, "make durable");
  if (file.close() != 0 && written) written = system_error(path, "close");
  if (written && ::renameat(folder, temporary.c_str(), folder, name.c_str()) != 0)
    written = system_error(path_of(name), "replace");
  if (!written) {
    ::unlinkat(folder, temporary.c_str(), 0);
    return written;
  }
  return sync();
}

Result<> OutputFolder::rename(const std::string& from, const std::string& to) const {
  if (::renameat(folder_->get(), from.c_str(), folder_->get(), to.c_str()) != 0)
    return system_error(path_of(from), "rename");
  return {};
}

Result<> OutputFolder::sync() const {
  if (::fsync(folder_->get()) != 0) return system_error(path_, "make durable");
  return {};
}

}  // namespace troupe
