// Any text as a run file: refused with Errc::usage, or it is a configuration that is written and
// read back as the same one. Input: the YAML text.
#include <cstdint>
#include <cstdlib>

#include "launch/config/yaml.h"
#include "launch/recipes/resolve.h"
#include "tests/fuzz/scratch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe::launch::recipes;
  const auto text = troupe::fuzz::text_of(data, size);
  const auto tree = troupe::launch::config::parse_yaml(text, "fuzz");
  const auto config = config_of(text, "fuzz");
  for (const auto* error : {tree ? nullptr : &tree.error(), config ? nullptr : &config.error()})
    if (error && error->code != troupe::Errc::usage) std::abort();
  if (!config) return 0;
  const std::string written = to_yaml(*config);
  const auto again = config_of(written, "again");
  if (!again || to_yaml(*again) != written) std::abort();
  return 0;
}
