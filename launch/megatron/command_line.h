// `troupe flags`, and the programs with the names of Megatron's scripts: links to troupe in
// build/release/megatron.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <string_view>

namespace troupe::launch::megatron {

/// The command for a program's path: "convert" for "megatron/convert_ckpt"; "" for troupe itself.
std::string_view command_of(std::string_view program_path);
/// True for pretrain_gpt and posttrain_gpt.
bool trains(std::string_view command);

/// Adds flags, pretrain_gpt and posttrain_gpt.
void add_programs(CLI::App& app, std::function<int()>& action);

}  // namespace troupe::launch::megatron
