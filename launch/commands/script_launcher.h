// torchrun, python and python3 as names of the program: a script of Megatron that starts
// `torchrun ... pretrain_gpt.py ...` starts troupe where these links are first in PATH.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"

namespace troupe::launch::commands {

struct Launched {
  enum class Kind { command, ranks, other } kind = Kind::other;
  std::vector<std::string> words;  ///< of the command, its name first; of other: all arguments
  int ranks = 1;
};

/// What the words behind torchrun or python start: a command of ours for a listed script
/// (script_names.h), behind torchrun also behind its options and `-m torch.distributed.launch`;
/// anything else is another program. Throws Failure (Errc::usage, Errc::unsupported): options that
/// torchrun does not have, or more hosts than one.
Launched launched(const std::string& name, const std::vector<std::string>& arguments);

/// The next program of this name in the folders of `path` that is not `self`; "": none.
std::string next_program(const std::string& name, const std::string& path, const std::string& self);

/// Where argv[0] is one of these names: the words of a command of ours, or the process becomes
/// mpirun or the next program of that name. Otherwise the arguments as command_words() returns
/// them. `check` gets the words of a command before its ranks start. Signals are inherited, so call
/// it before any is ignored. Errors of launched() and of `check`; Errc::not_found, io.
using CheckWords = std::function<Result<>(const std::vector<std::string>& words)>;
Result<std::vector<std::string>> launched_words(int argc, char** argv, const CheckWords& check);

}  // namespace troupe::launch::commands
