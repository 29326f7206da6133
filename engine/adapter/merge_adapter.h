// Merging an adapter into the weights of its base model.
#pragma once

#include <string>

#include "engine/base/error.h"
#include "engine/models/decoder.h"

namespace troupe::engine::adapter {

/// Adds the adapter in `folder` to the weights of its base, a whole model without an adapter.
/// Errors of read_adapter and load_adapter; Errc::unsupported for an adapter of a tied output head.
Result<> merge_adapter(models::Decoder& base, const std::string& folder);

}  // namespace troupe::engine::adapter
