// The file of finished samples in a checkpoint that was saved before ledgers had them: the wire
// form of the list, as the tensors `header` and `part-N` of a safetensors file, and `format` with
// the number of the format. Files of format 1, without that tensor, have no sampling masks.
#pragma once

#include <string>
#include <vector>

#include "algorithms/training/weight_versions.h"

namespace troupe::launch::run {

/// Throws Failure: Errc::not_found, corrupt.
std::vector<algorithms::FinishedSample> read_finished_samples(const std::string& path);

}  // namespace troupe::launch::run
