#include "launch/terminal/interruption.h"

namespace troupe::launch::terminal {

namespace {

// Global, because a signal handler takes no arguments.
volatile std::sig_atomic_t ctrl_c_pressed = 0;

void on_ctrl_c(int) {
  ctrl_c_pressed = 1;
}

}  // namespace

Interruption::Interruption() {
  ctrl_c_pressed = 0;
  sigaction(SIGINT, nullptr, &former_);
  if (former_.sa_handler == SIG_IGN) return;
  struct sigaction action {};
  action.sa_handler = on_ctrl_c;
  sigaction(SIGINT, &action, nullptr);
}

Interruption::~Interruption() {
  sigaction(SIGINT, &former_, nullptr);
}

bool Interruption::pending() {
  return ctrl_c_pressed != 0;
}

bool Interruption::take() {
  const bool pressed = pending();
  ctrl_c_pressed = 0;
  return pressed;
}

}  // namespace troupe::launch::terminal
