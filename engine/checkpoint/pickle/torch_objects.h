// Storages and tensors of torch in a pickle (torch/serialization.py, persistent_id;
// torch/_utils.py, _rebuild_tensor_v2).
#pragma once

#include <span>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/pickle/pickle_graph.h"

namespace troupe::engine::checkpoint {

/// The storage of the persistent id ("storage", class, key, location, number of elements). Errors
/// of these functions have no prefix: Errc::corrupt; Errc::unsupported for a type of elements that
/// safetensors files do not have.
Result<PickleNode> torch_storage(const PickleGraph& graph, PickleId persistent_id);

/// The tensor of _rebuild_tensor_v2(storage, offset, shape, strides, ...): inside its storage, and
/// without more elements than it. Errc::corrupt.
Result<PickledTensor> torch_tensor(const PickleGraph& graph, std::span<const PickleId> arguments,
                                   const PickleLimits& limits);

}  // namespace troupe::engine::checkpoint
