// The initial values of an adapter.
#pragma once

#include <cstdint>

#include "engine/models/decoder.h"

namespace troupe::engine::adapter {

/// As PEFT starts one: A uniform in +-1/sqrt(inputs), B zero, magnitudes the norms of the base's
/// rows. The model answers as its base does. Depends on seed, name and place of an element alone,
/// not on the grid. Collective over the model's tp.
void start_adapter(models::Decoder& model, std::uint64_t seed);

}  // namespace troupe::engine::adapter
