// Sets up a sandboxed child process between clone() and exec(): system calls only, no allocation.
#pragma once

#include <array>
#include <string_view>

#include "actors/sandbox/plan.h"

namespace troupe::actors::sandbox {

/// Steps of the setup, in order.
enum class SetupStep {
  parent,
  session,
  streams,
  mounts,
  proc,
  folder,
  landlock,
  limits,
  user,
  filter,
  program
};
constexpr std::array<std::string_view, 11> names_of(SetupStep) {
  return {"watch its parent",
          "create a session",
          "redirect its streams",
          "build its file system",
          "detach the old root",
          "enter its folder",
          "restrict its files with Landlock",
          "set its limits",
          "change its user",
          "install its syscall filter",
          "run"};
}

/// Report of a child whose setup failed.
struct SetupError {
  SetupStep step = SetupStep::parent;
  int error = 0;   ///< errno
  int which = -1;  ///< index in SandboxPlan::mounts, or -1
};

/// Descriptors in the child; all are 3 or above.
struct ChildPipes {
  int input, output, errors;  ///< become 0, 1, 2
  int go;      ///< receives a byte when the parent is ready; its other end closes with the parent
  int report;  ///< a SetupError is written here; exec closes it
  /// The parent's end of `go`. Closed first: while open it would hide the end of the parent.
  int parents;
};

/// Sets the process up and runs the program. Never returns. `folder`: working directory under
/// Isolation::limits.
[[noreturn]] void run_child(const SandboxPlan& plan, const char* folder, const ChildPipes& pipes,
                            char* const* run, char* const* environment);

}  // namespace troupe::actors::sandbox
