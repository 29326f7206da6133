// The values of an adapter that begins, and of a base with an adapter merged into it.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/error.h"
#include "engine/models/decoder.h"

namespace troupe::engine::adapter {

/// As PEFT starts one: A uniform in +-1/sqrt(inputs), B zero, magnitudes the norms of the base's
/// rows. The model answers as its base does. Depends on seed, name and place of an element alone,
/// not on the grid. Collective over the model's tp.
void start_adapter(models::Decoder& model, std::uint64_t seed);

/// Adds the adapter of `folder` into the weights of its base, a whole model without one. Errc as
/// read_adapter, load_adapter; unsupported: an adapter of the output head of a model whose head is
/// the embedding.
Result<> merge_adapter(models::Decoder& base, const std::string& folder);

}  // namespace troupe::engine::adapter
