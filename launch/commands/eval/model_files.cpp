#include "launch/commands/eval/model_files.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/manifest.h"

namespace troupe::launch::commands {

namespace fs = std::filesystem;

Json checksums(const std::string& folder) {
  Json out = Json::Object{};
  if (folder.empty()) return out;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string type = entry.path().extension().string();
    const bool used = type == ".json" || type == ".safetensors" || type == ".model" ||
                      type == ".jinja" || type == ".txt";
    if (entry.is_regular_file() && used) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  for (const auto& file : files)
    out.set(file.filename().string(),
            value_or_throw(engine::checkpoint::measure_file(file.string())).xxh3_128);
  return out;
}

}  // namespace troupe::launch::commands
