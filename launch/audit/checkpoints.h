// The checkpoints of a run beside its ledger: their files, the anchors in them, and their weights.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "launch/audit/events.h"
#include "launch/audit/findings.h"
#include "launch/audit/history.h"

namespace troupe::launch::audit {

struct AnchoredCheckpoint {
  std::int64_t step = 0;
  std::string path;
  std::int64_t length = 0;  ///< rows of the chain when it was saved; 0: it has no anchor
  std::string head;
};

/// The checkpoints of an output directory, by step. One that is damaged is a finding.
std::vector<AnchoredCheckpoint> read_checkpoints(const std::string& run, Findings& findings);

/// Compares them with the ledger.
void compare_checkpoints(const std::vector<AnchoredCheckpoint>& checkpoints, const Chain& chain,
                         const History& history, Findings& findings);

/// Compares the ids in samples.jsonl with those of the batches.
void compare_samples(const std::string& run, const History& history, Findings& findings);

}  // namespace troupe::launch::audit
