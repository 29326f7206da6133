// A thread on which the signals of the process are blocked.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace troupe {

/// Runs `work` on a new thread with all asynchronous signals blocked: the main thread handles them.
/// Synchronous signals (SIGBUS, SIGSEGV, ...) stay unblocked. `name` is truncated to 15 bytes.
/// Throws std::system_error if the system starts no thread (environment_error() describes it).
std::thread thread_with_blocked_signals(const std::string& name, std::function<void()> work);

}  // namespace troupe
