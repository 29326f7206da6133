// StopMatcher: has the text of a growing output reached a stop string?
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/generate/generator.h"

namespace troupe::engine::generate {

struct StopMatch {
  std::string stop;    ///< the string found; the earliest in the text, the first listed among those
  std::size_t at = 0;  ///< where it begins in the text
  std::string text;    ///< decoded ids before it
  bool found() const { return !stop.empty(); }
};

/// Looks at the text of `ids`, whose last one is new. Decodes only a tail of them unless a stop
/// string shows up there.
StopMatch find_stop(std::span<const std::int32_t> ids, const std::vector<std::string>& stops,
                    const TextDecoder& decode);

}  // namespace troupe::engine::generate
