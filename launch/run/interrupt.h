// SIGINT and SIGTERM: the first asks the run to checkpoint and leave, a second one a second later
// leaves at once.
#pragma once

#include "actors/runtime/stop.h"

namespace troupe::launch {

/// While it lives, the first signal asks `stop` and says so on stderr; a second one, unless it
/// comes within a second of the first, ends the process with exit code 130. Afterwards the process
/// is on its way out: a first one changes nothing, a second one does. One at a time.
class Interrupts {
 public:
  explicit Interrupts(actors::Stop& stop);
  Interrupts(const Interrupts&) = delete;
  ~Interrupts();
};

}  // namespace troupe::launch
