// The one way in which activations and gradients of a tensor-parallel group are added up.
#pragma once

#include <string_view>

#include "engine/ops/device.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::nn {

/// x becomes the sum of the ranks' x, the same bits on all of them. Without a group nothing happens.
void sum_over(parallel::Communicator* group, ops::Device& device, Tensor& x, std::string_view what);

}  // namespace troupe::engine::nn
