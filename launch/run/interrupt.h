// Signals that end a run after a checkpoint: SIGINT, SIGTERM, SIGHUP (a closed terminal), SIGUSR1
// and SIGUSR2 (batch systems). All handling of these signals is here.
#pragma once

#include <string_view>

#include "actors/runtime/stop.h"

namespace troupe::launch::run {

/// From now on a signal ends the process with exit code 130, until there is an Interrupts object. A
/// signal that was ignored when the process started stays ignored, as nohup wants it. One
/// exception: a shell without job control ignores SIGINT for its background commands, so that
/// Ctrl-C does not reach them; SIGINT sent by kill(1) still does.
void handle_interrupts();

/// Ignores the signals, in a process that another one tells to end: in a worker of launch, and in
/// all ranks of mpirun but rank 0. A worker keeps the default action of SIGTERM, by which launch
/// ends it.
enum class KeepTerm { no, yes };
void ignore_interrupts(KeepTerm keep);

/// During its lifetime the first signal requests `stop` and prints a notice to stderr; SIGINT or
/// SIGTERM a second or more after the first signal ends the process with exit code 130. Later
/// signals of the other kinds change nothing: batch systems and terminals send several. After its
/// lifetime the process is exiting: the first signal is ignored. At most one object at a time.
class Interrupts {
 public:
  explicit Interrupts(actors::Stop& stop);
  Interrupts(const Interrupts&) = delete;
  ~Interrupts();
};

/// The name of the first signal ("SIGHUP"), or "".
std::string_view interrupt_name();

}  // namespace troupe::launch::run
