// Unpaired preference data (KTO): a row is a prompt, a completion and a label, or a pair, which
// becomes two examples.
#pragma once

#include <optional>
#include <vector>

#include "engine/data/layouts/columns.h"
#include "engine/data/layouts/encode.h"

namespace troupe::engine::data {

/// The examples of one row: one, or two for a pair, the chosen one first.
struct UnpairedRow {
  std::vector<UnpairedExample> examples;
  std::int64_t cut_tokens = 0;  ///< tokens beyond max_length, of all of them
};

/// Adds the row's label (true or false, 1 or 0) to its sample. Errc::bad_input.
Result<Sample> with_label(Result<Sample> sample, const Columns& row);
/// nullopt if the prompt alone fills max_length.
Result<std::optional<UnpairedRow>> encode_unpaired(const Sample& sample, const TextEncoder& encoder,
                                                   const EncodeOptions& options);

}  // namespace troupe::engine::data
