// The ledger of a run: where it begins, how it describes the run, and the time that it takes.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "algorithms/training/journal.h"
#include "algorithms/training/sample_ledger.h"
#include "launch/run/session.h"

namespace troupe::launch::run {

/// The anchor in the checkpoint that the run resumes from, if it is one of its output directory
/// whose ledger is there. Logs a warning where the ledger of a checkpoint with an anchor is gone.
std::optional<engine::ledger::Anchor> ledger_anchor(const Session& session);

/// Opens the ledger of the session's output. Throws Failure: the errors of Ledger::open().
std::unique_ptr<engine::ledger::Ledger> open_ledger(
    const Session& session, const std::optional<engine::ledger::Anchor>& anchor);

/// Members of a `started` row: algorithm, async.mode, eta, and whether other programs make the
/// samples.
Json ledger_header(const config::RunConfig& config);

/// ledger/rows, ledger/syncs, ledger/waits and ledger/waited (seconds in these waits) since the
/// call before. `ledger` outlives the function.
std::function<algorithms::Metrics()> ledger_times(const algorithms::SampleLedger& ledger);

}  // namespace troupe::launch::run
