// SIGINT and SIGTERM: the first asks the run to checkpoint and leave, a second one a second later leaves at once.
#pragma once

#include "actors/runtime/stop.h"

namespace troupe::launch {

/// Installs the handlers; `stop` must live until the process ends. A second signal, unless it comes within a second of the
/// first, ends the process with exit code 130.
void catch_interrupts(actors::Stop& stop);

}  // namespace troupe::launch
