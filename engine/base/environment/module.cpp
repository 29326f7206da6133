#include "engine/base/environment/module.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "engine/base/text/text.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

fs::path program_folder() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

/// Whether the file belongs to root, to this user or to the owner of the program: in /tmp, anybody
/// can put a file beside a copy of the program.
bool belongs_to_the_program(const fs::path& file) {
  struct stat library {
  }, program{};
  if (::stat(file.c_str(), &library) != 0 || ::stat("/proc/self/exe", &program) != 0) return false;
  return library.st_uid == 0 || library.st_uid == ::geteuid() || library.st_uid == program.st_uid;
}

/// The first of these paths below the program's folder and its parent that exists, or "".
fs::path first_of(const std::vector<fs::path>& below_folder,
                  const std::vector<fs::path>& below_parent) {
  std::error_code ignored;
  const fs::path folder = program_folder();
  if (!folder.is_absolute()) return {};  // without /proc: never the current folder
  std::vector<fs::path> places;
  for (const fs::path& each : below_folder) places.push_back(folder / each);
  for (const fs::path& each : below_parent) places.push_back(folder.parent_path() / each);
  for (const fs::path& place : places)
    if (fs::is_regular_file(place, ignored) && belongs_to_the_program(place)) return place;
  return {};
}

/// The path of the library, or "" if it is nowhere.
fs::path find_module(const std::string& library) {
  return first_of({library}, {library, fs::path("lib/troupe") / library});
}

}  // namespace

Result<void*> load_from_module(const std::string& library, const char* symbol) {
  const fs::path place = find_module(library);
  if (place.empty())
    return fail(Errc::not_found, cat("no ", library, " beside ", program_folder().string()));
  void* handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* address = handle ? dlsym(handle, symbol) : nullptr;
  if (address) return address;
  const char* reason = dlerror();
  return fail(Errc::unsupported,
              cat(place.string(), " cannot be loaded (", reason ? reason : "no reason given", ")"));
}

bool has_module(const std::string& library) {
  return !find_module(library).empty();
}

Result<std::string> find_program_file(const std::string& name) {
  const fs::path below = fs::path("share/troupe") / name;
  const fs::path place = first_of({below}, {below});
  if (!place.empty()) return place.string();
  return fail(Errc::not_found,
              cat("no share/troupe/", name, " beside ", program_folder().string(),
                  "; an installation of troupe has it: copy more than the program"));
}

}  // namespace troupe
