// Samples that a ledger has: what a run takes over of the batches that it has not trained yet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/ledger/ledger.h"

namespace troupe::engine::ledger {

struct StoredSample {
  std::int64_t batch = 0, sample = 0;
  std::string payload;  ///< whose hash is that of the row
};

struct StoredSamples {
  std::vector<StoredSample> samples;  ///< by batch and id; of one that was made twice the later
  std::int64_t removed = 0;           ///< those whose segment was removed
};

/// The samples of batches from `first_batch` on in the first `until.length` rows of the ledger of a
/// run's output directory, without those that a later start took back. Errc::not_found: no ledger;
/// corrupt: another hash of row `until.length` or of a payload, or a segment that is missing; io.
Result<StoredSamples> read_samples(const std::string& output, const Anchor& until,
                                   std::int64_t first_batch);

}  // namespace troupe::engine::ledger
