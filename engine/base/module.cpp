#include "engine/base/module.h"

#include <dlfcn.h>

#include <filesystem>

#include "engine/base/text.h"

namespace troupe {

Result<void*> load_from_module(const std::string& library, const char* symbol) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const auto& place :
       {folder / library, folder.parent_path() / library, folder.parent_path() / "lib" / library}) {
    if (!fs::is_regular_file(place, ignored)) continue;
    void* handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* address = handle ? dlsym(handle, symbol) : nullptr;
    if (address) return address;
    const char* reason = dlerror();
    return fail(Errc::unsupported, cat(place.string(), " cannot be loaded (",
                                       reason ? reason : "no reason given", ")"));
  }
  return fail(Errc::not_found, cat("no ", library, " beside ", folder.string()));
}

}  // namespace troupe
