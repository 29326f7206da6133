// The options of `troupe train` that MindSpeed has for profiling.
#pragma once

#include <CLI/App.hpp>

#include "launch/config/resolve.h"

namespace troupe::launch {

/// Each is --set of the key profile.*. `sources` must outlive the parsing.
void add_profile(CLI::App& command, Sources& sources);

}  // namespace troupe::launch
