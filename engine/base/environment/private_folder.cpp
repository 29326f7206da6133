#include "engine/base/environment/private_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "engine/base/environment/trusted_path.h"
#include "engine/base/files/environment_error.h"
#include "engine/base/files/system_calls.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view name_prefix = "troupe-";
constexpr std::size_t random_letters = 6;
constexpr const char* lock_name = "lock";
constexpr std::size_t longest_path = 80;  // leaves room for the socket's name

Descriptor open_folder(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool is_own(const Descriptor& folder) {
  struct stat found {};
  return ::fstat(folder.get(), &found) == 0 && found.st_uid == ::geteuid() &&
         (found.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

bool names(const std::string& path, const Descriptor& folder) {
  struct stat here {
  }, held{};
  return ::lstat(path.c_str(), &here) == 0 && ::fstat(folder.get(), &held) == 0 &&
         here.st_dev == held.st_dev && here.st_ino == held.st_ino;
}

void remove_folder(const Descriptor& folder, const std::string& path) {
  std::error_code failed, ignored;
  const std::string content = cat("/proc/self/fd/", folder.get());
  for (fs::directory_iterator at(content, failed), end; !failed && at != end; at.increment(failed))
    fs::remove_all(at->path(), ignored);
  if (names(path, folder)) ::rmdir(path.c_str());
}

// Locked before it has its name: a folder with a file `lock` that is not locked has no process.
Result<Descriptor> create_lock(const Descriptor& folder, const std::string& path) {
  constexpr const char* unlocked_name = "new-lock";
  Descriptor lock(::openat(folder.get(), unlocked_name,
                           O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock.open() || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 ||
      ::renameat(folder.get(), unlocked_name, folder.get(), lock_name) != 0)
    return system_error(path, "lock");
  return lock;
}

// Removes what killed processes have left: folders of this user whose lock nobody holds.
void sweep(const std::string& place) {
  std::error_code failed;
  for (fs::directory_iterator at(place, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(name_prefix) || name.size() != name_prefix.size() + random_letters)
      continue;
    const Descriptor folder = open_folder(at->path().string());
    if (!folder.open() || !is_own(folder)) continue;
    const Descriptor lock(
        ::openat(folder.get(), lock_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (lock.open() && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0)
      remove_folder(folder, at->path().string());
  }
}

}  // namespace

Result<PrivateFolder> PrivateFolder::make() {
  std::string failed = "cannot create a private folder:";
  const std::array<std::pair<const char*, const char*>, 3> places{
      {{"XDG_RUNTIME_DIR", std::getenv("XDG_RUNTIME_DIR")},
       {"TMPDIR", std::getenv("TMPDIR")},
       {"the default", "/tmp"}}};
  for (const auto& [variable, given] : places) {
    if (!given || !*given) continue;
    const auto place = trusted_path(given);
    if (!place && place.error().code == Errc::unsupported)
      log_warning(cat(variable, " is not used for private files: ", place.error().what));
    auto made = place ? make_in(*place) : fail(place.error());
    if (made) return made;
    failed += cat(" ", made.error().what, ";");
  }
  return fail(Errc::io, cat(failed, " set TMPDIR to a short writable path"));
}

Result<PrivateFolder> PrivateFolder::make_in(const std::string& place) {
  std::string path = cat(place, "/", name_prefix, std::string(random_letters, 'X'));
  if (path.size() > longest_path)
    return fail(Errc::io, cat(place, " is too long for the path of a socket"));
  sweep(place);
  if (!::mkdtemp(path.data())) return fail(os_error(errno, place));
  Descriptor folder = open_folder(path);
  if (!folder.open() || !is_own(folder))
    return fail(Errc::io, cat(path, " was replaced after its creation"));
  auto lock = create_lock(folder, path);
  RETURN_IF_ERROR(lock);
  return PrivateFolder(std::move(path), std::move(folder), std::move(*lock));
}

Result<std::string> PrivateFolder::part(const std::string& name) const {
  if (!names(path_, folder_))
    return fail(Errc::io, cat(path_, " was renamed or replaced; start the run again"));
  std::string path = cat(path_, "/", name);
  if (::mkdirat(folder_.get(), name.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(os_error(errno, cat("cannot create the folder ", path)));
  return path;
}

PrivateFolder::PrivateFolder(PrivateFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      folder_(std::move(other.folder_)),
      lock_(std::move(other.lock_)) {
}

PrivateFolder::~PrivateFolder() {
  if (!path_.empty()) remove_folder(folder_, path_);
}

}  // namespace troupe
