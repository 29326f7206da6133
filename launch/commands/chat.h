// `troupe chat`: a dialogue in the terminal, or over stdin, one message a line.
#pragma once

#include "launch/commands/generate.h"

namespace troupe::launch {

/// Returns the exit code. Throws Failure.
int chat(const GenerateOptions& options);

}  // namespace troupe::launch
