// The finished samples of a checkpoint of async.mode free or rollout.source service, which are in
// the ledger of its run: OUTPUT/ledger.db and OUTPUT/ledger, beside the checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/training/weight_versions.h"
#include "engine/ledger/ledger.h"
#include "launch/run/kept_files.h"

namespace troupe::launch::run {

/// The length and the last hash of the ledger that a checkpoint has; nullopt: it has none. Throws
/// Failure.
std::optional<engine::ledger::Anchor> anchor_of(const std::string& checkpoint);

struct RecordedSamples {
  std::vector<algorithms::FinishedSample> samples;
  std::int64_t removed = 0;  ///< others, whose segments later checkpoints made superfluous
};
/// The samples of the batches that a checkpoint has not trained, in their order, checked as
/// read_kept_samples() does; nullopt: the checkpoint has no anchor, or its ledger is not there.
/// Throws Failure: Errc::corrupt, which names the file.
std::optional<RecordedSamples> read_recorded_samples(const std::string& checkpoint,
                                                     const KeptBounds& bounds);

}  // namespace troupe::launch::run
