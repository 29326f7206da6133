// FinishedSamples: the completions of the batches that are sampled but not trained, for the
// checkpoints of async.mode free. A resumed run samples the others again, with the same ids.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "actors/protocol/generate.h"
#include "algorithms/training/weight_versions.h"

namespace troupe::algorithms {

class FinishedSamples {
 public:
  void add(std::int64_t batch, const std::vector<actors::protocol::Completion>& completions);
  /// nullptr for a sample that is not finished.
  const actors::protocol::Completion* find(std::int64_t batch, std::uint64_t sample_id) const;
  /// The batches before `batch` are trained.
  void drop_before(std::int64_t batch);

  std::uint64_t count() const;
  /// In the order of batches and ids.
  std::vector<FinishedSample> all() const;
  /// Takes over the samples of a checkpoint after `trained` batches, without those that are older
  /// than `eta` allows.
  void restore(std::vector<FinishedSample> samples, std::int64_t trained, std::int64_t eta);

 private:
  std::map<std::int64_t, std::map<std::uint64_t, actors::protocol::Completion>> batches_;
};

}  // namespace troupe::algorithms
