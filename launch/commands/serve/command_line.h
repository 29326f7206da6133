// The options of `troupe serve`.
#pragma once

#include <CLI/App.hpp>
#include <functional>

namespace troupe::launch::commands {

/// Adds the command; parsing it sets `action`, which outlives the parsing.
void add_serve(CLI::App& app, std::function<int()>& action);

}  // namespace troupe::launch::commands
