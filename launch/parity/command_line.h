// The options of `troupe parity`.
#pragma once

#include <CLI/App.hpp>
#include <functional>

namespace troupe::launch::parity {

/// Adds the command; parsing it sets `action`, which outlives the parsing.
void add_parity(CLI::App& app, std::function<int()>& action);

}  // namespace troupe::launch::parity
