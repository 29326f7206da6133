// Logged completions as text (samples.txt) and as JSON lines (samples.jsonl).
#pragma once

#include <cstdint>
#include <string>

#include "algorithms/journal.h"
#include "engine/base/output_folder.h"

namespace troupe::launch {

/// One line of samples.jsonl.
std::string sample_line(std::int64_t step, const algorithms::Sample& sample);
/// One paragraph of samples.txt. The texts come from a model and pass through for_terminal().
std::string sample_text(std::int64_t step, const algorithms::Sample& sample);

/// Truncates samples.jsonl to `step` and rewrites samples.txt from it. Errc::io.
Result<> truncate_samples_after(const OutputFolder& folder, std::int64_t step);

}  // namespace troupe::launch
