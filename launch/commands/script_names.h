// The names of MindSpeed-LLM's scripts as names of the program: a link called convert_ckpt is
// `troupe convert`.
#pragma once

#include <string>
#include <vector>

namespace troupe::launch::commands {

/// The arguments of the command line. Where the program's file name, argv[0], is that of a script,
/// also with .py, its command is put in front of them: preprocess_data, convert_ckpt,
/// convert_ckpt_v2, which always writes the names of Megatron core, inference, evaluation,
/// pretrain_gpt, posttrain_gpt.
std::vector<std::string> command_words(int argc, const char* const* argv);

}  // namespace troupe::launch::commands
