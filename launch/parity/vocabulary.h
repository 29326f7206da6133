// Comparison of the log-probabilities of tokens of the vocabulary at some positions.
#pragma once

#include <cstddef>
#include <span>

#include "launch/parity/compare.h"
#include "launch/parity/runner.h"

namespace troupe::launch::parity {

/// ParityOptions::targets tokens, at three positions of each of the first four texts: by scoring,
/// and by generation with reported tokens. The first text has this number.
PairResult compare_vocabulary(const Settings& settings, PathRunner& runner,
                              std::span<const Text> texts, std::size_t number);

}  // namespace troupe::launch::parity
