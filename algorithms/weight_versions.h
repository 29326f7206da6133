// WeightVersions: the port through which an asynchronous run keeps older weights with its
// checkpoints, for the batches that are still to be sampled with them, and finished samples of the
// batches that are still to be trained.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/protocol/generate.h"
#include "actors/protocol/train.h"

namespace troupe::algorithms {

using SharedWeights = std::shared_ptr<const actors::protocol::Weights>;

/// A sample of batch `batch`, counted from 0, which is not trained yet.
struct FinishedSample {
  std::int64_t batch = 0;
  actors::protocol::Completion completion;
};
inline auto fields(FinishedSample& s) {
  return std::tie(s.batch, s.completion);
}

class WeightVersions {
 public:
  virtual ~WeightVersions() = default;
  /// Makes the weights durable for the checkpoint of `step`, which is saved afterwards. Throws
  /// Failure.
  virtual void save(std::int64_t step, const std::vector<SharedWeights>& weights) = 0;
  /// The weights that were saved with that checkpoint. Throws Failure.
  virtual SharedWeights load(std::int64_t step, std::uint64_t version) = 0;
  /// Makes finished samples durable, after save() of the same step. Throws Failure.
  virtual void save_samples(std::int64_t step, const std::vector<FinishedSample>& samples) = 0;
  /// The samples that were saved with that checkpoint. Throws Failure.
  virtual std::vector<FinishedSample> load_samples(std::int64_t step) = 0;
};

}  // namespace troupe::algorithms
