#include "engine/data/readers/parquet_library.h"

#include <dlfcn.h>

#include <filesystem>

#include "engine/base/text.h"

namespace troupe::engine::data {
namespace {

using Open = void(const std::string&, Result<std::unique_ptr<RowReader>>&);
constexpr const char* library = "libtroupe_parquet.so";

Result<Open*> load() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  // Beside the program, one up (programs of the tests), or in an installation's lib.
  for (const auto& place : {folder / library, folder.parent_path() / library, folder.parent_path() / "lib" / library}) {
    if (!fs::is_regular_file(place, ignored)) continue;
    // Never closed: Arrow's threads and static objects do not survive it.
    void* handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* symbol = handle ? dlsym(handle, "troupe_open_parquet") : nullptr;
    if (symbol) return reinterpret_cast<Open*>(symbol);
    const char* reason = dlerror();
    return fail(Errc::unsupported,
                cat("reading parquet needs ", place.string(), ", which cannot be loaded (", reason ? reason : "no reason given",
                    "): run cmake/fetch_arrow.sh with the build folder and build again"));
  }
  return fail(Errc::unsupported,
              cat("reading parquet needs Arrow, which this build was made without (no ", library, " beside ", folder.string(),
                  "): run cmake/fetch_arrow.sh with the build folder, then cmake and the build again, or convert the file to .jsonl"));
}

}  // namespace

Result<std::unique_ptr<RowReader>> open_parquet(const std::string& path) {
  static const Result<Open*> open = load();
  if (!open) return fail(open.error().code, cat(path, ": ", open.error().what));
  Result<std::unique_ptr<RowReader>> reader = fail(Errc::internal, "");
  (*open)(path, reader);
  return reader;
}

}  // namespace troupe::engine::data
