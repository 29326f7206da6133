// The two ends of a coroutine that nobody awaits: one that owns itself, and how it ended.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <string>

#include "engine/base/error.h"

namespace troupe::actors {

/// A coroutine that owns itself; it runs at once, to its first wait. It must catch everything.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }
  };
};

/// How a task or a handler ended: no exception crosses threads, only its content.
struct CaughtException {
  std::optional<Error> failure;    ///< it threw Failure
  std::optional<std::string> bug;  ///< it threw anything else
};
/// From inside a catch block.
CaughtException caught_exception();

}  // namespace troupe::actors
