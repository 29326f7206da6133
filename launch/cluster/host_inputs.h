// What a group on another host needs to be equal to the controller's: the program and the files
// that it reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/identity.h"
#include "launch/recipes/role.h"

namespace troupe::launch::cluster {

/// A file as the controller's host has it.
struct InputFile {
  std::string path;
  std::uint64_t bytes = 0;
  std::string xxh3_128;
  bool operator==(const InputFile&) const = default;
};

/// The files of a run that a role reads, and identity.json of the output folder for roles that
/// write checkpoints there.
Result<std::vector<InputFile>> inputs_of(const engine::checkpoint::Identity& identity,
                                         recipes::Role role, const std::string& output);

/// Errc::usage, with the name of this host: this program, `own`, is not that of the controller,
/// `build` ("troupe 0.1.0 (commit 0123456789)"); a file is missing or has other content.
Result<> check_host(const std::string& own, const std::string& build,
                    const std::vector<InputFile>& inputs);

}  // namespace troupe::launch::cluster
