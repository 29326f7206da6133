#include "launch/interrupt.h"

#include <unistd.h>

#include <csignal>

#include "launch/exit_code.h"

namespace troupe::launch {

namespace {

// A signal handler has no other way to its run.
std::atomic<actors::Stop*> asked{nullptr};

void on_signal(int) {
  actors::Stop* stop = asked.load();
  if (!stop || stop->requested()) _exit(exit_interrupted);
  stop->request();
}

}  // namespace

void catch_interrupts(actors::Stop& stop) {
  asked = &stop;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace troupe::launch
