// SIGINT and SIGTERM: the first stops the run after a checkpoint, a second one quits immediately.
#pragma once

#include "actors/runtime/stop.h"

namespace troupe::launch {

/// During its lifetime the first signal requests `stop` and prints a notice to stderr; a second
/// one, a second or more after the first, ends the process with exit code 130. After its lifetime
/// the process is exiting: the first signal is ignored, a second one quits. At most one object at a
/// time.
class Interrupts {
 public:
  explicit Interrupts(actors::Stop& stop);
  Interrupts(const Interrupts&) = delete;
  ~Interrupts();
};

}  // namespace troupe::launch
