// SIGINT and SIGTERM: the first asks the run to checkpoint and leave, the second leaves at once.
#pragma once

#include "actors/runtime/stop.h"

namespace troupe::launch {

/// Installs the handlers; `stop` must live until the process ends. The second signal ends the process with exit code 130.
void catch_interrupts(actors::Stop& stop);

}  // namespace troupe::launch
