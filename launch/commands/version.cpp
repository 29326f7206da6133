#include "launch/commands/version.h"

#include "engine/base/environment/module.h"
#include "engine/base/text/text.h"
#include "engine/ops/cpu/cpu_options.h"
#include "troupe_build.h"

namespace troupe::launch::commands {

std::string version_line() {
  return cat("troupe ", build_version);
}

std::string build_text() {
  const std::string commit = build_commit;
  return cat(version_line(), commit.empty() ? "" : cat(" (commit ", commit, ")"));
}

std::string version_text() {
  const auto module = [](const char* library, const std::string& version) {
    return has_module(library) ? version : std::string("not available");
  };
  return cat(build_text(), "\ninstruction set: ", engine::ops::best_instruction_set(),
             "\nMPI: ", module("libtroupe_mpi.so", build_mpi),
             "\nArrow: ", module("libtroupe_parquet.so", build_arrow));
}

}  // namespace troupe::launch::commands
