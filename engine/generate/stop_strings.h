// Stop strings: detection in the text of a growing output.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/generate/generator.h"

namespace troupe::engine::generate {

struct StopMatch {
  std::string stop;    ///< the earliest match in the text; the first in the list among equals
  std::size_t at = 0;  ///< its offset in the text
  std::string text;    ///< the text before it
  bool found() const { return !stop.empty(); }
};

/// Searches the text of `ids`, whose last one is new. Decodes only a tail unless a stop string
/// occurs there. A match that ends within the text of the first `at_least` tokens is none.
StopMatch find_stop(std::span<const std::int32_t> ids, const std::vector<std::string>& stops,
                    const TextDecoder& decode, std::int32_t at_least = 0);

}  // namespace troupe::engine::generate
