// WeightVersions: the port through which an asynchronous run keeps older weights in its
// checkpoints, for the batches that are still to be sampled with them, and finished samples of the
// batches that are still to be trained.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
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
  /// Makes weights and samples durable for the checkpoint of `step`, which is saved next and takes
  /// over the files among them: returns RunState::kept for its message. Throws Failure.
  virtual std::string save(std::int64_t step, const std::vector<SharedWeights>& weights,
                           const std::vector<FinishedSample>& samples) = 0;
  /// The weights that are part of that checkpoint. Throws Failure.
  virtual SharedWeights load(std::int64_t step, std::uint64_t version) = 0;
  /// Whether checkpoints have the samples; if not, a resumed run makes them again.
  virtual bool keeps_samples() const { return true; }
  /// The samples that are part of that checkpoint; none where it has none. Throws Failure.
  virtual std::vector<FinishedSample> load_samples(std::int64_t step) = 0;
};

}  // namespace troupe::algorithms
