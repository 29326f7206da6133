// RolloutService: how other programs use a rollout: they sample from its weights.
#pragma once

#include <cstdint>

#include "engine/base/shared_array.h"

namespace troupe::actors::roles {

/// The rollout calls every function on its own thread.
class RolloutService {
 public:
  virtual ~RolloutService() = default;

  /// The rollout has taken over weights: the values of all trained logical tensors, flat. Returns
  /// without waiting for requests that use older ones.
  virtual void adopt(std::uint64_t version, const SharedArray<float>& values) = 0;
};

}  // namespace troupe::actors::roles
