// SIGINT and SIGTERM: the first asks the run to checkpoint and leave, the second leaves at once.
#pragma once

namespace troupe::launch {

/// Installs the handlers (and ignores SIGPIPE). Call once, before threads start.
void catch_interrupts();
/// True once a person or a scheduler has asked the process to stop. Cheap: algorithms look at it between steps.
bool interrupted();

}  // namespace troupe::launch
