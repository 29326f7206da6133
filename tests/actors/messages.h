// Messages and actors shared by the tests of the runtime.
#pragma once

#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "actors/runtime/node.h"
#include "actors/runtime/run.h"

namespace troupe::actors {

struct Add {
  using Reply = int;
  static constexpr std::string_view name = "add";
  std::vector<int> numbers;
};
inline auto fields(Add& m) {
  return std::tie(m.numbers);
}

struct Fail {
  using Reply = void;
  static constexpr std::string_view name = "fail";
  std::string how;
};
inline auto fields(Fail& m) {
  return std::tie(m.how);
}

struct Wait {
  using Reply = int;
  static constexpr std::string_view name = "wait";
  int seconds = 0;
};
inline auto fields(Wait& m) {
  return std::tie(m.seconds);
}

/// A compute handler.
struct Adder {
  using Handled = Messages<Add, Fail>;
  int asked = 0;
  int on(Add m) {
    ++asked;
    int sum = 0;
    for (const int n : m.numbers) sum += n;
    return sum;
  }
  Result<> on(Fail m) {
    if (m.how == "bug") check(false, "two and two make five");
    if (m.how == "throw") throw Failure({Errc::io, "the disk is gone"});
    return fail(Errc::bad_input, "row 7 is empty");
  }
};
static_assert(Handles<Adder, Add> && Handles<Adder, Fail> && !Handles<Adder, Wait>);

/// A coroutine handler that waits on the control executor.
struct Sleeper {
  using Handled = Messages<Wait>;
  Node* node;
  Task<int> on(Wait m) {
    auto pause = node->after(std::chrono::seconds(m.seconds));
    co_await pause.get();
    co_return m.seconds;
  }
};

}  // namespace troupe::actors
