// `troupe worker`: one rank of one group of `troupe launch`. It reads its assignment from stdin and
// exits at the end of stdin.
#pragma once

#include <cstdint>
#include <string>

namespace troupe::launch::cluster {

/// `timeout`: parallel.timeout, which the ranks of a group need before their assignment; `build`:
/// this program, as LaunchOptions::build. Returns the exit code. Throws Failure.
int worker(std::int64_t timeout, const std::string& build);

}  // namespace troupe::launch::cluster
