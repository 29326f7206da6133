// Shared prefixes of a batch: rows of a sequence that equal those of the sequence before it.
#pragma once

#include <optional>

#include "engine/data/experience.h"
#include "engine/models/spec.h"
#include "engine/nn/shared_rows.h"

namespace troupe::engine::train {

/// The distinct rows of `part`. Absent where fewer than an eighth of the rows would be saved, since
/// the copies for attention cost time and memory, and for models whose rows depend on the length of
/// their sequence.
std::optional<nn::SharedRows> shared_prefixes(const data::Experience& part,
                                              const models::DecoderSpec& spec);

}  // namespace troupe::engine::train
