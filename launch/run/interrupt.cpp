#include "launch/run/interrupt.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <utility>

#include "engine/base/threads/cancellation.h"
#include "launch/run/exit_code.h"

namespace troupe::launch::run {

namespace {

constexpr std::array<std::pair<int, std::string_view>, 5> handled{{{SIGINT, "SIGINT"},
                                                                   {SIGTERM, "SIGTERM"},
                                                                   {SIGHUP, "SIGHUP"},
                                                                   {SIGUSR1, "SIGUSR1"},
                                                                   {SIGUSR2, "SIGUSR2"}}};

// Global, because a signal handler takes no arguments.
std::atomic<actors::Stop*> stop_of_run{nullptr};
std::atomic<bool> run_began{false};
std::atomic<std::int64_t> first_time{0};  // milliseconds; 0: none yet
std::atomic<int> first_signal{0};
std::atomic<bool> in_background{false};

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
void on_signal(int number, siginfo_t* info, void*) {
  const bool of_terminal = info->si_code == SI_KERNEL;
  if (number == SIGINT && of_terminal && in_background) return;
  if (!run_began) {
    print_notice(true);
    _exit(exit_interrupted);
  }
  const std::int64_t now = milliseconds_now();
  std::int64_t first = 0;
  if (!first_time.compare_exchange_strong(first, now)) {
    if (now - first >= 1000 && (number == SIGINT || number == SIGTERM)) _exit(exit_interrupted);
  } else if (actors::Stop* stop = stop_of_run.load()) {
    first_signal = number;
    stop->request();
    print_notice(cancel_reading());
  }
}

bool is_ignored(int number) {
  struct sigaction present {};
  return ::sigaction(number, nullptr, &present) == 0 && (present.sa_flags & SA_SIGINFO) == 0 &&
         present.sa_handler == SIG_IGN;
}

}  // namespace

void handle_interrupts() {
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  for (const auto& [number, name] : handled) {
    const bool ignored = is_ignored(number);
    if (number == SIGINT) in_background = ignored;
    if (!ignored || number == SIGINT) ::sigaction(number, &action, nullptr);
  }
}

void ignore_interrupts(KeepTerm keep) {
  for (const auto& [number, name] : handled)
    if (number != SIGTERM || keep == KeepTerm::no) std::signal(number, SIG_IGN);
}

Interrupts::Interrupts(actors::Stop& stop) {
  first_time = 0;
  first_signal = 0;
  stop_of_run = &stop;
  run_began = true;
}

Interrupts::~Interrupts() {
  stop_of_run = nullptr;
}

std::string_view interrupt_name() {
  for (const auto& [number, name] : handled)
    if (number == first_signal) return name;
  return "";
}

}  // namespace troupe::launch::run
