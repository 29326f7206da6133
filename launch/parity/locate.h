// Where a path has computed another value than a forward pass over the text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "launch/parity/paths.h"
#include "launch/parity/recorder.h"

namespace troupe::launch::parity {

/// The first operation, in the order of a forward pass, of which a path has not computed a row that
/// the pass has, or its operation for log-probabilities.
struct Location {
  std::string path;
  std::string block;  ///< "embedding", "layer 3" or "head"
  std::string op;     ///< a function of ops::Device
  /// Of the row in the text; absent where the path has computed it right for another text.
  std::optional<std::int32_t> position = {};
};

/// What a path has computed, and what it says of the token at `position` of a text.
struct Suspect {
  std::string_view path;
  const ComputedRows& computed;
  const std::string& score_op;
  TokenValues values;
  bool only_texts = true;  ///< computes no rows but those of the texts, and so no drafts
};

/// Compares the suspects with passes over the texts `in.texts`, whose operations `recorder`
/// records. The token that differs is at `position` of text `number` of them, of which the pass has
/// the first `length` tokens. Absent: all suspects have computed what the passes have.
std::optional<Location> locate(const PathInputs& in, Recorder& recorder, std::size_t number,
                               std::int32_t position, std::int32_t length,
                               std::span<const Suspect> suspects);

}  // namespace troupe::launch::parity
