// `mpirun -n N troupe serve --tp T`: one server whose model N ranks share.
#pragma once

#include "launch/commands/serve/serve.h"

namespace troupe::launch::commands {

/// serve() on every rank: rank 0 has the server, the others their parts of its engine. Errors are
/// thrown by all ranks or by none. Errc::usage unless the ranks are those of the grid.
int serve_under_mpirun(ServeOptions options);

/// Errc::usage for a grid of several ranks where mpirun did not start this process.
void check_alone(const ServeOptions& options);

}  // namespace troupe::launch::commands
