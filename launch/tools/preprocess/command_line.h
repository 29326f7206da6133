// The options of `troupe preprocess`: those of preprocess_data.py of Megatron-LM and MindSpeed-LLM.
#pragma once

#include <CLI/App.hpp>
#include <functional>

namespace troupe::launch::tools::preprocess {

/// Adds the command; parsing it sets `action`, which outlives the parsing.
void add_preprocess(CLI::App& app, std::function<int()>& action);

}  // namespace troupe::launch::tools::preprocess
