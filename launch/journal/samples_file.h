// Samples a person can read (samples.txt), and the same for programs (samples.jsonl).
#pragma once

#include <cstdint>
#include <string>

#include "algorithms/journal.h"
#include "engine/base/error.h"

namespace troupe::launch {

/// One line of samples.jsonl.
std::string sample_line(std::int64_t step, const algorithms::Sample& sample);
/// The same as a paragraph of samples.txt. Control characters other than newlines and tabs are
/// escaped: a model writes what it likes.
std::string sample_text(std::int64_t step, const algorithms::Sample& sample);

/// Cuts samples.jsonl back to `step` and writes samples.txt anew from what is left. Errc::io.
Result<> cut_back_samples(const std::string& folder, std::int64_t step);

}  // namespace troupe::launch
