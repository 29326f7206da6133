// The initial values of an adapter.
#pragma once

#include <cstdint>

#include "engine/models/decoder.h"

namespace troupe::engine::adapter {

/// Initializes the adapter as PEFT does: A uniform in +-1/sqrt(inputs), B zero, magnitudes the
/// norms of the base's rows; the model's outputs equal those of its base. An element depends only
/// on seed, name and position, not on the grid. Collective over the model's tp.
void init_adapter(models::Decoder& model, std::uint64_t seed);

}  // namespace troupe::engine::adapter
