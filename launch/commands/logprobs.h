// `troupe logprobs`: log-probabilities of token sequences.
#pragma once

#include "launch/commands/model.h"

namespace troupe::launch {

/// Returns the exit code. Throws Failure.
int logprobs(const ModelOptions& options);

}  // namespace troupe::launch
