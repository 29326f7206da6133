#include "actors/sandbox/temp_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "actors/sandbox/plan.h"
#include "engine/base/files/descriptor.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"

namespace troupe::actors::sandbox {
namespace {

namespace fs = std::filesystem;

// Names in a folder; of a bounded number of them, as their removal is repeated until none is left.
std::vector<std::string> names_in(const Descriptor& folder) {
  constexpr std::size_t at_once = 4096;
  std::vector<std::string> names;
  DIR* const stream = ::fdopendir(::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (stream == nullptr) return names;
  while (const dirent* entry = names.size() < at_once ? ::readdir(stream) : nullptr)
    if (const std::string name = entry->d_name; name != "." && name != "..") names.push_back(name);
  ::closedir(stream);
  return names;
}

// Opens a folder that may be closed even to its owner. The mode is changed by descriptor, because
// the name could have become that of a link.
Descriptor open_folder(int parent, const char* name) {
  const Descriptor found(::openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!found.open()) return Descriptor();
  if (::geteuid() != 0) ::chmod(cat("/proc/self/fd/", found.get()).c_str(), 0700);
  return Descriptor(::openat(found.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

bool is_folder_at(const Descriptor& parent, const std::string& name) {
  struct stat about {};
  return ::fstatat(parent.get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(about.st_mode);
}

using Identity = std::pair<dev_t, ino_t>;
Identity identity_of(const Descriptor& folder) {
  struct stat about {};
  return ::fstat(folder.get(), &about) == 0 ? Identity{about.st_dev, about.st_ino} : Identity{};
}

struct Removal {
  bool changed = false;
  std::string folder;  // one that is not empty
};
Removal remove_files(const Descriptor& folder, const std::vector<std::string>& names) {
  Removal out;
  for (const std::string& name : names) {
    const bool is_folder = is_folder_at(folder, name);
    const bool removed = ::unlinkat(folder.get(), name.c_str(), is_folder ? AT_REMOVEDIR : 0) == 0;
    out.changed |= removed;
    if (is_folder && !removed) out.folder = name;
  }
  return out;
}

// Descends into the folders and returns by "..", so that neither paths nor the number of open
// descriptors grow with the depth. Stops where the folder above is not the one that it came from.
bool remove_content(Descriptor folder) {
  std::vector<std::pair<std::string, Identity>> above;  // a folder's name, and what contains it
  while (folder.open()) {
    const auto names = names_in(folder);
    const Removal removal = remove_files(folder, names);
    if (!removal.folder.empty()) {
      above.emplace_back(removal.folder, identity_of(folder));
      folder = open_folder(folder.get(), removal.folder.c_str());
    } else if (!names.empty()) {
      if (!removal.changed) return false;
    } else if (above.empty()) {
      return true;
    } else {
      folder = Descriptor(::openat(folder.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      const auto& [name, container] = above.back();
      if (identity_of(folder) != container ||
          ::unlinkat(folder.get(), name.c_str(), AT_REMOVEDIR) != 0)
        return false;
      above.pop_back();
    }
  }
  return false;
}

// A folder, not a link to one, that belongs to this user, or that root has given to nobody. Anyone
// can make a folder of that name in /tmp.
bool is_own_folder(const std::string& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
         (found.st_uid == ::geteuid() || (::geteuid() == 0 && found.st_uid == nobody));
}

// The process id in "troupe-reward-PID-XXXXXX".
std::optional<pid_t> process_of(const std::string& name) {
  const auto dash = name.find('-', temp_folder_prefix.size());
  if (!name.starts_with(temp_folder_prefix) || dash == std::string::npos) return std::nullopt;
  const std::size_t begin = temp_folder_prefix.size();
  return parse_number<pid_t>(std::string_view(name).substr(begin, dash - begin));
}

void remove_folders_if(const std::function<bool(pid_t)>& removable) {
  std::error_code failed;
  std::vector<std::string> found;
  for (fs::directory_iterator at(fs::temp_directory_path(failed), failed), end;
       !failed && at != end; at.increment(failed))
    if (const auto process = process_of(at->path().filename().string());
        process && is_own_folder(at->path().string()) && removable(*process))
      found.push_back(at->path().string());
  for (const std::string& path : found) remove_temp_folder(path);
}

}  // namespace

Result<std::string> make_temp_folder(const std::string& directory, unsigned user) {
  std::string path = cat(directory, "/", temp_folder_prefix, ::getpid(), "-XXXXXX");
  if (::mkdtemp(path.data()) == nullptr)
    return fail(Errc::io, cat("cannot create a folder like ", path, ": ", std::strerror(errno)));
  if (::getuid() == 0 && ::chown(path.c_str(), user, user) != 0)
    return fail(Errc::io, cat("cannot change the owner of ", path, " to user ", user, ": ",
                              std::strerror(errno)));
  return path;
}

bool remove_temp_folder(const std::string& path) {
  return remove_content(open_folder(AT_FDCWD, path.c_str())) && ::rmdir(path.c_str()) == 0;
}

void remove_temp_folders_of(pid_t process) {
  remove_folders_if([process](pid_t of) { return of == process; });
}

void remove_temp_folders(bool (*may_be_running)(pid_t)) {
  remove_folders_if([may_be_running](pid_t of) { return !may_be_running(of); });
}

}  // namespace troupe::actors::sandbox
