// Adapters of a decoder in memory: their initial values, and merging one into the base.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/errors/error.h"
#include "engine/models/decoder.h"

namespace troupe::engine::adapter {

/// Initializes the adapter as PEFT does: A uniform in +-1/sqrt(inputs), B zero, magnitudes the
/// norms of the base's rows; the model's outputs equal those of its base. An element depends only
/// on seed, name and position, not on the grid. Collective over the model's tp.
void init_adapter(models::Decoder& model, std::uint64_t seed);

/// Adds the adapter in `folder` to the weights of its base, a whole model without an adapter.
/// Errors of read_adapter and load_adapter; Errc::unsupported for an adapter of a tied output head.
Result<> merge_adapter(models::Decoder& base, const std::string& folder);

}  // namespace troupe::engine::adapter
