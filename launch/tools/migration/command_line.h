// The options of `troupe import`.
#pragma once

#include <CLI/App.hpp>
#include <functional>

namespace troupe::launch::tools::migration {

/// Adds the command; parsing it sets `action`, which outlives the parsing.
void add_import(CLI::App& app, std::function<int()>& action);

}  // namespace troupe::launch::tools::migration
