// VersionStore: the weights and samples that an asynchronous run keeps in its checkpoints.
#pragma once

#include <string>

#include "algorithms/training/weight_versions.h"
#include "launch/run/session.h"

namespace troupe::launch::run {

class VersionStore final : public algorithms::WeightVersions {
 public:
  /// `session`: the run's; outlives the store. Those that are loaded are of the checkpoint that it
  /// resumes from.
  explicit VersionStore(const Session& session) : session_(session) {}

  std::string save(std::int64_t step, const std::vector<algorithms::SharedWeights>& weights,
                   const std::vector<algorithms::FinishedSample>& samples) override;
  algorithms::SharedWeights load(std::int64_t step, std::uint64_t version) override;
  std::vector<algorithms::FinishedSample> load_samples(std::int64_t step) override;

 private:
  const Session& session_;
};

}  // namespace troupe::launch::run
