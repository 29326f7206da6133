// WeightVersions: the port through which an asynchronous run keeps older weights with its
// checkpoints, for the batches that are still to be sampled with them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/protocol/train.h"

namespace troupe::algorithms {

using SharedWeights = std::shared_ptr<const actors::protocol::Weights>;

class WeightVersions {
 public:
  virtual ~WeightVersions() = default;
  /// Makes the weights durable for the checkpoint of `step`, which is saved afterwards. Throws
  /// Failure.
  virtual void save(std::int64_t step, const std::vector<SharedWeights>& weights) = 0;
  /// The weights that were saved with that checkpoint. Throws Failure.
  virtual SharedWeights load(std::int64_t step, std::uint64_t version) = 0;
};

}  // namespace troupe::algorithms
