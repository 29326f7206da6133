// Pipes, and waiting until descriptors are readable.
#pragma once

#include <chrono>
#include <span>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/files/descriptor.h"

namespace troupe {

struct Pipe {
  Descriptor read, write;
};

/// A pipe that exec() closes. Errc::io.
Result<Pipe> new_pipe();

/// Waits until one of `descriptors` is readable or the other end of one is closed, at most until
/// `deadline` (time_point::max(): without end). A pidfd is readable when its process has ended; the
/// writing end of a pipe is when its reading end is closed; -1 never is. Returns for each whether
/// it is.
std::vector<bool> wait_readable(std::span<const int> descriptors,
                                std::chrono::steady_clock::time_point deadline);
/// The same for one descriptor and at most `time`.
bool wait_readable(int descriptor, std::chrono::milliseconds time);

}  // namespace troupe
