// The checkpoint from which a run resumes: the newest whose files are all as they were saved, those
// of its critic and its moving reference included.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/read_checkpoint.h"
#include "launch/config/run_config.h"
#include "launch/run/kept_files.h"
#include "launch/run/training_state.h"

namespace troupe::launch::run {

/// The shape of the trained model; `resume_from`: the checkpoint that the run resumes from, or "".
/// Throws Failure.
engine::models::DecoderSpec spec_of_run(const config::RunConfig& config,
                                        const std::string& resume_from);

/// The shape of the trained model with the adapter that the run trains, if it trains one, for the
/// versions of its weights. Throws Failure.
engine::models::DecoderSpec trained_spec(const config::RunConfig& config,
                                         const std::string& checkpoint);

/// What the samples of a checkpoint with this state can hold. Throws Failure.
KeptBounds kept_bounds(const config::RunConfig& config, const std::string& checkpoint,
                       const TrainingState& state);

/// The finished samples of a checkpoint with this state: of its file, or of the ledger of its run.
/// Adds warnings of a file without a checksum, and of samples that are not there any more and are
/// made again. Throws Failure: Errc::corrupt.
std::vector<algorithms::FinishedSample> finished_samples(const config::RunConfig& config,
                                                         const std::string& checkpoint,
                                                         const TrainingState& state,
                                                         std::vector<std::string>& warnings);

/// engine::checkpoint::find_latest in config.output. A checkpoint whose companions or whose kept
/// files (kept_files.h) are damaged counts as damaged, and the one before it is used.
Result<std::optional<engine::checkpoint::FoundCheckpoint>> find_resumable(
    const config::RunConfig& config);

/// Verifies one checkpoint in the same way; returns warnings, of files without a checksum.
/// Errc::corrupt, not_found: which file.
Result<std::vector<std::string>> verify_resumable(const config::RunConfig& config,
                                                  const std::string& checkpoint);

}  // namespace troupe::launch::run
