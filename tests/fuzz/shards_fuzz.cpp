// Any text as a model.safetensors.index.json beside two shards: refused with a reason, or it lists
// each tensor where it is. Input: the index.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "engine/checkpoint/safetensors_folder.h"
#include "tests/fuzz/scratch_file.h"

namespace {

// A shard with one F32 tensor of one value.
std::string shard(const std::string& name) {
  std::string header = R"({")" + name + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  return length + header + std::string(4, '\0');
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe::engine::checkpoint;
  static const troupe::fuzz::ScratchFolder folder;
  static const std::string first = folder.write("a.safetensors", shard("x")),
                           second = folder.write("b.safetensors", shard("y"));
  folder.write(std::string(index_file), troupe::fuzz::text_of(data, size));
  const auto opened = SafetensorsFolder::open(folder.path());
  if (!opened) return 0;
  for (const auto& place : opened->all()) {
    const auto found = opened->find(place.tensor->name);
    if (!found || found->tensor != place.tensor) std::abort();
  }
  return 0;
}
