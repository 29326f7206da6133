// The options of `troupe convert`: those of convert_ckpt.py of MindSpeed-LLM, and --from-pickle.
#pragma once

#include <CLI/App.hpp>
#include <functional>

namespace troupe::launch::tools::convert {

/// Adds the command; parsing it sets `action`, which outlives the parsing.
void add_convert(CLI::App& app, std::function<int()>& action);

}  // namespace troupe::launch::tools::convert
