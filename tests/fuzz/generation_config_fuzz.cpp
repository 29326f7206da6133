// Any text as a generation_config.json: refused with a reason, or settings for a prompt of any
// length, or a reason why not. Input: the file.
#include <cstdint>
#include <cstdlib>

#include "engine/generate/generation_config.h"
#include "tests/fuzz/scratch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;            // NOLINT: a program of one page
  using namespace engine::generate;  // NOLINT
  const auto json = parse_json(fuzz::text_of(data, size), "fuzz", {.bytes = std::size_t{1} << 20});
  if (!json) return 0;
  const auto config = read_generation_config(*json, "fuzz");
  if (!config) {
    if (config.error().code != Errc::bad_input && config.error().code != Errc::unsupported)
      std::abort();
    return 0;
  }
  for (const std::size_t length : {std::size_t{0}, std::size_t{7}, std::size_t{1} << 40}) {
    const auto params = for_prompt(config->params, *config, length, 20);
    if (!params && params.error().code != Errc::usage) std::abort();
    if (params && params->max_new_tokens < 0) std::abort();
  }
  return 0;
}
