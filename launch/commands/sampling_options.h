// The options of `troupe generate` and `troupe chat` that are settings of sampling.
#pragma once

#include <CLI/App.hpp>

#include "launch/commands/generate.h"

namespace troupe::launch {

/// `options` must outlive the parsing.
void add_sampling(CLI::App& command, GenerateOptions& options);

}  // namespace troupe::launch
