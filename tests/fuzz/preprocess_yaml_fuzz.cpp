// Any bytes as the YAML file of `troupe preprocess`: refused, or words that each set an option.
// Input: the file.
#include <cstdint>
#include <cstdlib>

#include "launch/tools/preprocess/yaml_words.h"
#include "tests/fuzz/scratch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const troupe::fuzz::ScratchFolder folder;
  const auto words = troupe::launch::tools::preprocess::preprocess_words(
      folder.write("run.yaml", troupe::fuzz::text_of(data, size)));
  if (!words) return 0;
  for (const std::string& word : *words)
    if (!word.starts_with("--")) std::abort();
  return 0;
}
