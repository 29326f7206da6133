// RolloutService: how other programs use a rollout: they sample from its weights, and may make its
// samples in its place.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/protocol/generate.h"
#include "engine/base/memory/shared_array.h"

namespace troupe::actors::roles {

/// The rollout calls every function on its own thread.
class RolloutService {
 public:
  virtual ~RolloutService() = default;

  /// The rollout has taken over weights: the values of all trained logical tensors, flat. Returns
  /// without waiting for requests that use older ones.
  virtual void adopt(std::uint64_t version, const SharedArray<float>& values) = 0;

  /// Whether the samples of Generate are made by other programs.
  virtual bool makes_samples() const = 0;
  /// Offers the samples to other programs, and ends the offers that `requests` do not contain.
  /// `version`: of the rollout's weights; a sample may have tokens of this version and later ones.
  virtual void offer(const std::vector<protocol::SampleRequest>& requests,
                     std::uint64_t version) = 0;
  /// Waits until samples have arrived, a short time at most, and returns those that are complete,
  /// without texts and updates.
  virtual std::vector<protocol::Completion> take() = 0;
};

}  // namespace troupe::actors::roles
