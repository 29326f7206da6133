// Files of a checkpoint for the batches that follow it: training/version-V.safetensors, older
// weights that async.mode pinned samples them with. The manifest of the checkpoint lists them.
// Checkpoints without a ledger's anchor may have training/samples.safetensors as well, finished
// samples of async.mode free and of rollout.source service (recorded_samples.h: others). A
// checkpoint of version 0.1.0 has both in OUTPUT/versions/checkpoint-STEP, without checksums.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/training/weight_versions.h"
#include "engine/base/files/output_folder.h"
#include "engine/data/experience_checks.h"
#include "engine/models/spec.h"

namespace troupe::launch::run {

/// Writes the files durably to a new folder below the output and returns its name for
/// checkpoint::Snapshot::kept; "" where there is nothing to keep. Throws Failure: Errc::io.
std::string stage_kept(const OutputFolder& output, std::int64_t step,
                       const std::vector<algorithms::SharedWeights>& weights);

/// Where a file of the checkpoint is.
struct KeptFile {
  std::string path;          ///< "": it has none
  bool has_checksum = true;  ///< the manifest lists it
};
KeptFile kept_version(const std::string& checkpoint, std::uint64_t version);
KeptFile kept_samples(const std::string& checkpoint);

/// The weights of a version, compared with the checksums of their tensors; `spec`: the shape of the
/// model, an adapter included. Throws Failure: Errc::not_found, corrupt, which name the file.
algorithms::SharedWeights read_kept_version(const std::string& checkpoint, std::uint64_t version,
                                            const engine::models::DecoderSpec& spec);

/// What samples of a checkpoint can hold.
struct KeptBounds {
  engine::data::SampleBounds sample;
  std::uint64_t updates = 0;  ///< optimizer updates before it
};
/// Throws Failure (Errc::corrupt, which names `where`) unless the samples are in the order of
/// batches and ids, and have possible values.
void check_samples(const std::vector<algorithms::FinishedSample>& samples, const std::string& where,
                   const KeptBounds& bounds);

/// The samples of a checkpoint that has a file of them, none if it has none, checked by
/// engine::data::find_bad_value as those of /v1/experience. Throws Failure: Errc::corrupt, which
/// names the file.
std::vector<algorithms::FinishedSample> read_kept_samples(const std::string& checkpoint,
                                                          const KeptBounds& bounds);

}  // namespace troupe::launch::run
