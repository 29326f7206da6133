// Logged completions as text (samples.txt) and as JSON lines (samples.jsonl).
#pragma once

#include <cstdint>
#include <string>

#include "algorithms/journal.h"
#include "engine/base/error.h"

namespace troupe::launch {

/// One line of samples.jsonl.
std::string sample_line(std::int64_t step, const algorithms::Sample& sample);
/// One paragraph of samples.txt. Escapes control characters other than newlines and tabs, because
/// the text comes from a model.
std::string sample_text(std::int64_t step, const algorithms::Sample& sample);

/// Truncates samples.jsonl to `step` and rewrites samples.txt from it. Errc::io.
Result<> truncate_samples_after(const std::string& folder, std::int64_t step);

}  // namespace troupe::launch
