#include "launch/run/interrupt.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <string_view>

#include "launch/run/exit_code.h"

namespace troupe::launch {

namespace {

// A signal handler has no other way to its run.
std::atomic<actors::Stop*> asked{nullptr};
std::atomic<std::int64_t> asked_at{0};  // milliseconds; 0: not yet

std::int64_t milliseconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// A step may take minutes: who interrupts one is told at once, by what a handler may call.
void say_so() {
  constexpr std::string_view words =
      "\ntroupe: interrupted; the step in progress ends, a checkpoint is saved, and the run "
      "leaves. Interrupt again to leave at once.\n";
  const int before = errno;
  if (::write(STDERR_FILENO, words.data(), words.size()) < 0) errno = before;  // nobody listens
}

// timeout(1) and service managers signal the process and then its whole group: two signals, one
// wish. They may arrive on two threads at once, or one inside the handler of the other: whoever
// sets the time first is the first.
void on_signal(int) {
  const std::int64_t now = milliseconds_now();
  std::int64_t first = 0;
  if (!asked_at.compare_exchange_strong(first, now)) {
    if (now - first >= 1000) _exit(exit_interrupted);
  } else if (actors::Stop* stop = asked.load()) {
    stop->request();
    say_so();
  }
}

}  // namespace

Interrupts::Interrupts(actors::Stop& stop) {
  asked_at = 0;
  asked = &stop;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

Interrupts::~Interrupts() {
  asked = nullptr;
}

}  // namespace troupe::launch
