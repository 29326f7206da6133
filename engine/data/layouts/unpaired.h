// Answers that are judged one by one, good or bad (KTO): a row is prompt, completion and label, or
// a pair, which is two of them.
#pragma once

#include <optional>
#include <vector>

#include "engine/data/encode.h"
#include "engine/data/layouts/columns.h"

namespace troupe::engine::data {

/// What a row holds: one example, or two of a pair, the chosen one first.
struct UnpairedRow {
  std::vector<UnpairedExample> examples;
  bool truncated = false;  ///< one of them is longer than max_length
};

/// Adds the row's label (true or false, 1 or 0) to its sample. Errc::bad_input.
Result<Sample> with_label(Result<Sample> sample, const Columns& row);
/// nullopt: a prompt that fills max_length leaves nothing to train on.
Result<std::optional<UnpairedRow>> encode_unpaired(const Sample& sample, const TextEncoder& encoder,
                                                   const EncodeOptions& options);

}  // namespace troupe::engine::data
