// Which rows of a batch are the same row of the model: sequences that begin like the one before
// them.
#pragma once

#include <optional>

#include "engine/data/experience.h"
#include "engine/models/spec.h"
#include "engine/nn/shared_rows.h"

namespace troupe::engine::train {

/// The rows of `part` that are to be computed. Absent where fewer than an eighth would be saved,
/// since copies for attention cost time and memory, and of models whose rows depend on the length
/// of their sequence.
std::optional<nn::SharedRows> shared_prefixes(const data::Experience& part,
                                              const models::DecoderSpec& spec);

}  // namespace troupe::engine::train
