// `troupe audit`: examines the ledger of a run with no part of the code that writes it. What it
// shares with that: the SQLite wrapper, SHA-256, XXH3, and the manifests of checkpoints.
#pragma once

#include <string>

#include "launch/audit/findings.h"

namespace troupe::launch::audit {

struct AuditOptions {
  std::string run;    ///< the output directory
  bool json = false;  ///< print one JSON object
};

/// Examines the ledger, its segments, checkpoints and samples.jsonl of a run, which may be in
/// progress. Errc::not_found: no ledger. Damage is in the findings.
Result<Findings> examine(const std::string& run);

/// Prints the findings; the exit code: 0, or that of Errc::corrupt where there is damage. Throws
/// Failure.
int audit(const AuditOptions& options);

}  // namespace troupe::launch::audit
