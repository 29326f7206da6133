// Logged completions as text (samples.txt) and as JSON lines (samples.jsonl).
#pragma once

#include <cstdint>
#include <string>

#include "algorithms/training/journal.h"
#include "engine/base/files/output_folder.h"

namespace troupe::launch::journal {

/// One line of samples.jsonl.
std::string sample_line(std::int64_t step, const algorithms::Sample& sample);
/// One paragraph of samples.txt. The texts come from a model and pass through for_terminal().
std::string sample_text(std::int64_t step, const algorithms::Sample& sample);

/// Rewrites samples.txt from samples.jsonl, which was truncated. Errc::io.
Result<> rewrite_sample_texts(const OutputFolder& folder);

}  // namespace troupe::launch::journal
