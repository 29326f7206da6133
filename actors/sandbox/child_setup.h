// The way of a new process into its box, from clone() to exec(): system calls only, nothing is
// allocated.
#pragma once

#include <array>
#include <string_view>

#include "actors/sandbox/plan.h"

namespace troupe::actors::sandbox {

/// What is done on the way, in order.
enum class Step { parent, session, streams, mounts, proc, folder, limits, user, filter, program };
constexpr std::array<std::string_view, 10> names_of(Step) {
  return {"watch its parent",     "lead a session",
          "take its streams",     "build its own view of files",
          "close that view",      "enter its folder",
          "take its limits",      "become another user",
          "give up system calls", "run"};
}

/// What a process that could not go on says of it.
struct Trouble {
  Step step = Step::parent;
  int error = 0;   ///< errno
  int which = -1;  ///< of the plan's shown things
};

/// Descriptors of the child; all are 3 or above.
struct Ends {
  int input, output, errors;  ///< become 0, 1, 2
  int go;       ///< a byte is read when the parent has done its part; its other end closes when the
                ///< parent ends
  int report;   ///< Trouble is written here; closed by exec
  int parents;  ///< the parent's end of `go`: whoever keeps it open never sees that the parent has
                ///< ended
};

/// Never returns. `folder`: where it starts under Isolation::limits.
[[noreturn]] void enter(const Plan& plan, const char* folder, const Ends& ends, char* const* run,
                        char* const* environment);

}  // namespace troupe::actors::sandbox
