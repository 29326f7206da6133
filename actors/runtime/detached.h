// Detached: a coroutine that nobody awaits. CaughtException: what an exception leaves behind.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <string>

#include "engine/base/errors/error.h"

namespace troupe::actors {

/// A coroutine that owns itself and starts immediately. It must catch all exceptions: one that
/// escapes ends the process. What it calls outside of its try block must not throw.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }
  };
};

/// Content of an exception, which may cross threads where exceptions may not.
struct CaughtException {
  std::optional<Error> failure;    ///< set for a Failure and for an exhausted environment
  std::optional<std::string> bug;  ///< set for any other exception
};
/// Returns the content of the current exception. Call it inside a catch block.
CaughtException caught_exception();

}  // namespace troupe::actors
