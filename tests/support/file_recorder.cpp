// A library for LD_PRELOAD that records what a program does to the files below a directory, or
// interferes with it. Environment:
//   FILE_RECORDER_ROOT   the directory, as realpath prints it; nothing else is touched
//   FILE_RECORDER_LOG    appends one record for each operation (recorded_files.h)
//   FILE_RECORDER_KILL   SIGKILL before the operation of this number, from 1
//   FILE_RECORDER_FULL   writing to files whose names begin so fails with ENOSPC
//   FILE_RECORDER_FREE   the number of such writes after which there is space
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>

namespace {

std::recursive_mutex mutex;
std::uint64_t operations = 0;

std::string setting(const char* name) {
  const char* value = ::getenv(name);
  return value == nullptr ? "" : value;
}
const std::string& root() {
  static const std::string value = setting("FILE_RECORDER_ROOT");
  return value;
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

bool is_watched(std::string_view path) {
  return !root().empty() && path.starts_with(root()) &&
         (path.size() == root().size() || path[root().size()] == '/');
}

std::string path_of(int file) {
  std::array<char, 4096> target{};
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const auto size = ::readlink(link.c_str(), target.data(), target.size());
  return size <= 0 ? "" : std::string(target.data(), static_cast<std::size_t>(size));
}

// An absolute path without repeated or trailing slashes.
std::string absolute(int folder, const char* name) {
  std::string path = name;
  if (!path.starts_with('/')) {
    std::array<char, 4096> here{};
    const std::string base = folder != AT_FDCWD                              ? path_of(folder)
                             : ::getcwd(here.data(), here.size()) != nullptr ? here.data()
                                                                             : "";
    path = base + "/" + path;
  }
  std::string out;
  for (const char c : path)
    if (c != '/' || !out.ends_with('/')) out += c;
  while (out.size() > 1 && out.ends_with('/')) out.pop_back();
  return out;
}

std::string relative(const std::string& path) {
  return path.size() > root().size() ? path.substr(root().size() + 1) : "";
}

// Counts an operation and kills the process if its turn has come.
void begin_operation() {
  static const std::uint64_t last =
      std::strtoull(setting("FILE_RECORDER_KILL").c_str(), nullptr, 10);
  if (++operations == last) ::kill(::getpid(), SIGKILL);
}

// "KIND PATH-BYTES OTHER-BYTES OFFSET DATA-BYTES\n", then the bytes.
void record(char kind, const std::string& path, const std::string& other = "",
            std::uint64_t offset = 0, std::string_view data = {}) {
  static const std::string log = setting("FILE_RECORDER_LOG");
  if (log.empty()) return;
  static const auto open_file = next<int(const char*, int, ...)>("open");
  static const auto write_file = next<ssize_t(int, const void*, std::size_t)>("write");
  static const int file = open_file(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string from = relative(path);
  std::string text = std::string(1, kind) + ' ' + std::to_string(from.size()) + ' ' +
                     std::to_string(other.size()) + ' ' + std::to_string(offset) + ' ' +
                     std::to_string(data.size()) + '\n' + from + other;
  text.append(data);
  const int code = errno;
  for (std::string_view rest = text; !rest.empty();) {
    const auto count = write_file(file, rest.data(), rest.size());
    if (count <= 0) ::abort();
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  errno = code;
}

// Whether this write fails.
bool is_full(const std::string& path) {
  static const std::string name = setting("FILE_RECORDER_FULL"),
                           limit = setting("FILE_RECORDER_FREE");
  static const std::uint64_t last = std::strtoull(limit.c_str(), nullptr, 10);
  static std::uint64_t failed = 0;
  if (name.empty() || !path.substr(path.rfind('/') + 1).starts_with(name)) return false;
  return limit.empty() || failed++ < last;
}

int open_watched(int folder, const char* name, int flags, mode_t mode) {
  static const auto original = next<int(int, const char*, int, ...)>("openat");
  const bool changes = (flags & (O_CREAT | O_TRUNC)) != 0;
  if (!changes) return original(folder, name, flags, mode);
  const std::lock_guard lock(mutex);
  const std::string path = absolute(folder, name);
  if (!is_watched(path)) return original(folder, name, flags, mode);
  begin_operation();
  struct stat before {};
  const bool existed = ::lstat(path.c_str(), &before) == 0;
  const int file = original(folder, name, flags, mode);
  const bool truncated = existed && (flags & O_TRUNC) != 0;
  record(file < 0 ? 'n' : !existed ? 'c' : truncated ? 't' : 'n', path);
  return file;
}

// `act` performs the operation; its result is an error if it is negative.
template <class Act>
auto change(char kind, const std::string& path, Act act, const std::string& other = "") {
  const std::lock_guard lock(mutex);
  if (!is_watched(path)) return act();
  begin_operation();
  const auto result = act();
  record(result < 0 ? 'n' : kind, path, other);
  return result;
}

template <class Act>
ssize_t write_watched(int file, std::string_view data, std::int64_t offset, Act act) {
  const std::lock_guard lock(mutex);
  const std::string path = root().empty() ? "" : path_of(file);
  if (!is_watched(path)) return act();
  begin_operation();
  const bool full = is_full(path);
  const ssize_t count = full ? -1 : act();
  if (full) errno = ENOSPC;
  if (count <= 0) {
    record('n', path);
    return count;
  }
  const auto at = offset >= 0 ? offset : ::lseek(file, 0, SEEK_CUR) - count;
  record('w', path, "", static_cast<std::uint64_t>(at),
         data.substr(0, static_cast<std::size_t>(count)));
  return count;
}

int rename_watched(int from, const char* old_name, int to, const char* new_name, unsigned flags) {
  static const auto original = next<int(int, const char*, int, const char*, unsigned)>("renameat2");
  const std::string target = absolute(to, new_name);
  return change((flags & RENAME_EXCHANGE) != 0 ? 'x' : 'r', absolute(from, old_name),
                [&] { return original(from, old_name, to, new_name, flags); },
                is_watched(target) ? relative(target) : target);
}

mode_t mode_in(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? static_cast<mode_t>(va_arg(arguments, int)) : 0;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int open(const char* name, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_in(flags, arguments);
  va_end(arguments);
  return open_watched(AT_FDCWD, name, flags, mode);
}
EXPORT int open64(const char* name, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_in(flags, arguments);
  va_end(arguments);
  return open_watched(AT_FDCWD, name, flags, mode);
}
EXPORT int openat(int folder, const char* name, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_in(flags, arguments);
  va_end(arguments);
  return open_watched(folder, name, flags, mode);
}
EXPORT int openat64(int folder, const char* name, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_in(flags, arguments);
  va_end(arguments);
  return open_watched(folder, name, flags, mode);
}

EXPORT ssize_t write(int file, const void* data, std::size_t size) {
  static const auto original = next<ssize_t(int, const void*, std::size_t)>("write");
  if (root().empty()) return original(file, data, size);
  return write_watched(file, {static_cast<const char*>(data), size}, -1,
                       [&] { return original(file, data, size); });
}
EXPORT ssize_t writev(int file, const iovec* parts, int count) {
  static const auto original = next<ssize_t(int, const iovec*, int)>("writev");
  std::string data;
  for (int i = 0; i < count; ++i)
    data.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  return write_watched(file, data, -1, [&] { return original(file, parts, count); });
}
EXPORT ssize_t pwrite(int file, const void* data, std::size_t size, off_t offset) {
  static const auto original = next<ssize_t(int, const void*, std::size_t, off_t)>("pwrite");
  return write_watched(file, {static_cast<const char*>(data), size}, offset,
                       [&] { return original(file, data, size, offset); });
}
EXPORT ssize_t pwrite64(int file, const void* data, std::size_t size, off64_t offset) {
  return pwrite(file, data, size, offset);
}

EXPORT int ftruncate(int file, off_t size) {
  static const auto original = next<int(int, off_t)>("ftruncate");
  return change(
      't', path_of(file), [&] { return original(file, size); }, std::to_string(size));
}
EXPORT int ftruncate64(int file, off64_t size) {
  return ftruncate(file, size);
}
EXPORT int fsync(int file) {
  static const auto original = next<int(int)>("fsync");
  return change('s', path_of(file), [&] { return original(file); });
}
EXPORT int fdatasync(int file) {
  static const auto original = next<int(int)>("fdatasync");
  return change('s', path_of(file), [&] { return original(file); });
}

EXPORT int rename(const char* from, const char* to) {
  return rename_watched(AT_FDCWD, from, AT_FDCWD, to, 0);
}
EXPORT int renameat(int from, const char* old_name, int to, const char* new_name) {
  return rename_watched(from, old_name, to, new_name, 0);
}
EXPORT int renameat2(int from, const char* old_name, int to, const char* new_name, unsigned flags) {
  return rename_watched(from, old_name, to, new_name, flags);
}

EXPORT int unlinkat(int folder, const char* name, int flags) {
  static const auto original = next<int(int, const char*, int)>("unlinkat");
  return change('u', absolute(folder, name), [&] { return original(folder, name, flags); });
}
EXPORT int unlink(const char* name) {
  return unlinkat(AT_FDCWD, name, 0);
}
EXPORT int rmdir(const char* name) {
  return unlinkat(AT_FDCWD, name, AT_REMOVEDIR);
}
EXPORT int remove(const char* name) {
  struct stat found {};
  const bool folder = ::lstat(name, &found) == 0 && S_ISDIR(found.st_mode);
  return unlinkat(AT_FDCWD, name, folder ? AT_REMOVEDIR : 0);
}

EXPORT int mkdirat(int folder, const char* name, mode_t mode) {
  static const auto original = next<int(int, const char*, mode_t)>("mkdirat");
  return change('d', absolute(folder, name), [&] { return original(folder, name, mode); });
}
EXPORT int mkdir(const char* name, mode_t mode) {
  return mkdirat(AT_FDCWD, name, mode);
}
EXPORT int symlinkat(const char* target, int folder, const char* name) {
  static const auto original = next<int(const char*, int, const char*)>("symlinkat");
  return change(
      'l', absolute(folder, name), [&] { return original(target, folder, name); }, target);
}
EXPORT int symlink(const char* target, const char* name) {
  return symlinkat(target, AT_FDCWD, name);
}
