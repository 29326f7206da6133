// VersionStore: older weights of an asynchronous run beside its checkpoints, as
// OUTPUT/versions/checkpoint-STEP/version-V.safetensors, and the finished samples of its next
// batches as samples.safetensors.
#pragma once

#include <string>

#include "algorithms/weight_versions.h"
#include "engine/base/output_folder.h"

namespace troupe::launch {

class VersionStore final : public algorithms::WeightVersions {
 public:
  /// `output`: the run's directory.
  explicit VersionStore(OutputFolder output) : output_(std::move(output)) {}

  /// Replaces those of the same step, and removes those of steps that have no checkpoint any more.
  void save(std::int64_t step, const std::vector<algorithms::SharedWeights>& weights) override;
  /// Throws Failure: Errc::not_found, corrupt.
  algorithms::SharedWeights load(std::int64_t step, std::uint64_t version) override;
  void save_samples(std::int64_t step,
                    const std::vector<algorithms::FinishedSample>& samples) override;
  /// Throws Failure: Errc::not_found, corrupt.
  std::vector<algorithms::FinishedSample> load_samples(std::int64_t step) override;

 private:
  OutputFolder output_;
};

}  // namespace troupe::launch
