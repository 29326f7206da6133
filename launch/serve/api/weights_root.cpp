#include "launch/serve/api/weights_root.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "engine/base/text.h"

namespace troupe::launch::serve::api {

namespace fs = std::filesystem;

Result<WeightsRoot> WeightsRoot::open(const std::string& folder) {
  std::error_code failed;
  const fs::path real = fs::canonical(folder, failed);
  if (failed || !fs::is_directory(real, failed))
    return fail(Errc::usage, cat("--weights-root ", folder, ": expected a folder"));
  return WeightsRoot(real.string());
}

Result<std::string> WeightsRoot::find(const std::string& name) const {
  const fs::path path(name);
  const auto leads_out = [](const fs::path& part) { return part == ".."; };
  const auto outside = [&] {
    return fail(Errc::bad_input,
                cat(quote(name), ": expected the name of a checkpoint below --weights-root"));
  };
  if (path.empty() || path.is_absolute() || name.find('\0') != std::string::npos ||
      std::ranges::any_of(path, leads_out))
    return outside();
  std::error_code failed;
  const fs::path real = fs::canonical(fs::path(folder_) / path, failed);
  if (failed || !fs::is_directory(real, failed))
    return fail(Errc::not_found, cat("no checkpoint ", quote(name), " below --weights-root"));
  const fs::path root(folder_);
  if (std::ranges::mismatch(root, real).in1 != root.end()) return outside();
  return real.string();
}

}  // namespace troupe::launch::serve::api
