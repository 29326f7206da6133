// The state of a run from its output directory: whether it is running, how far it is, and how long
// it still takes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::launch::commands {

enum class Progressed {
  running,      ///< a process holds the lock of the directory
  complete,     ///< all steps, or early stopping
  interrupted,  ///< by a signal, after a checkpoint
  failed,       ///< with an error
  killed,       ///< it ended without a word
  unknown       ///< an earlier version wrote the files
};
constexpr std::array<std::string_view, 6> names_of(Progressed) {
  return {"running", "complete", "interrupted", "failed", "killed", "unknown"};
}

struct RunState {
  Progressed state = Progressed::unknown;
  std::int64_t process = 0;                 ///< of a running one; 0: of another PID namespace
  std::int64_t step = 0;                    ///< the last one with metrics
  std::int64_t steps = 0;                   ///< of the run; 0: unknown
  std::optional<double> reward, evaluated;  ///< the last ones (eval/reward)
  std::optional<double> seconds_left;       ///< of a running one, as fast as its last steps
  std::vector<std::string> warnings;        ///< that its metrics gave, the last ten
};

/// Reads metrics.jsonl, timings.jsonl and the lock of `folder`.
RunState read_run_state(const std::string& folder);

}  // namespace troupe::launch::commands
