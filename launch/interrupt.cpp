#include "launch/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <ctime>

#include "launch/exit_code.h"

namespace troupe::launch {

namespace {

// A signal handler has no other way to its run.
std::atomic<actors::Stop*> asked{nullptr};
std::atomic<std::int64_t> asked_at{0};  // milliseconds

std::int64_t milliseconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// timeout(1) and service managers signal the process and then its whole group: two signals, one wish.
void on_signal(int) {
  actors::Stop* stop = asked.load();
  if (!stop) _exit(exit_interrupted);
  if (!stop->requested()) {
    asked_at = milliseconds_now();
    stop->request();
  } else if (milliseconds_now() - asked_at.load() >= 1000) {
    _exit(exit_interrupted);
  }
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
