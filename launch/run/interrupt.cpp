#include "launch/run/interrupt.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <string_view>

#include "engine/base/cancellation.h"
#include "launch/run/exit_code.h"

namespace troupe::launch {

namespace {

// Global, because a signal handler takes no arguments.
std::atomic<actors::Stop*> stop_of_run{nullptr};
std::atomic<std::int64_t> first_signal{0};  // milliseconds; 0: none yet

std::int64_t milliseconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// Printed at once, because a step may take minutes. Uses async-signal-safe functions only.
void print_notice(bool before_first_step) {
  const std::string_view text =
      before_first_step ? "\nInterrupted before the first step.\n"
                        : "\nInterrupted: finishing this step and saving a checkpoint. Press "
                          "Ctrl-C again to quit immediately.\n";
  const int before = errno;
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) errno = before;
}

// timeout(1) and service managers signal the process and then its group: two signals within a
// second count as one. They may arrive on two threads at once, or one inside the handler of the
// other: the one that sets the time is the first.
void on_signal(int) {
  const std::int64_t now = milliseconds_now();
  std::int64_t first = 0;
  if (!first_signal.compare_exchange_strong(first, now)) {
    if (now - first >= 1000) _exit(exit_interrupted);
  } else if (actors::Stop* stop = stop_of_run.load()) {
    stop->request();
    print_notice(cancel_reading());
  }
}

}  // namespace

Interrupts::Interrupts(actors::Stop& stop) {
  first_signal = 0;
  stop_of_run = &stop;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

Interrupts::~Interrupts() {
  stop_of_run = nullptr;
}

}  // namespace troupe::launch
