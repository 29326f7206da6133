// `troupe flags`, and the commands with the names of Megatron's training scripts and of
// MindSpeed-LLM's inference, which links to troupe in build/release/megatron choose
// (commands/script_names.h).
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <string_view>

namespace troupe::launch::tools::megatron {

/// True for pretrain_gpt and posttrain_gpt.
bool trains(std::string_view command);

/// Adds flags, pretrain_gpt, posttrain_gpt and inference.
void add_programs(CLI::App& app, std::function<int()>& action);

}  // namespace troupe::launch::tools::megatron
