// Merging an adapter into the weights of its base model.
#pragma once

#include <string>

#include "engine/base/error.h"
#include "engine/models/decoder.h"

namespace troupe::engine::adapter {

/// Adds the adapter of `folder` into the weights of its base, a whole model without one. Errc as
/// read_adapter, load_adapter; unsupported: an adapter of the output head of a model whose head is
/// the embedding.
Result<> merge_adapter(models::Decoder& base, const std::string& folder);

}  // namespace troupe::engine::adapter
