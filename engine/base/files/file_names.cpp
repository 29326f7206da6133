#include "engine/base/files/file_names.h"

#include <algorithm>
#include <filesystem>

namespace troupe {

std::vector<std::string> file_names(const std::string& folder, std::string_view extension) {
  constexpr int most = 1000;
  std::vector<std::string> names;
  std::error_code failed;
  std::filesystem::directory_iterator at(folder, failed);
  for (int seen = 0; !failed && at != std::filesystem::directory_iterator() && seen < most;
       at.increment(failed), ++seen) {
    std::error_code ignored;
    if (at->is_regular_file(ignored) && at->path().extension() == extension)
      names.push_back(at->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace troupe
