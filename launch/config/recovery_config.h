// The section `recovery` of a run file: what a run survives.
#pragma once

#include <chrono>
#include <cstdint>

#include "engine/base/json/fields.h"
#include "engine/base/json/ranges.h"

namespace troupe::launch::config {

struct RecoveryConfig {
  double disk_wait = 60;
  std::int64_t restarts = 3;
  std::int64_t window = 60;
  double silence = 5;

  std::chrono::milliseconds silence_time() const {
    return std::chrono::milliseconds(static_cast<std::int64_t>(silence * 1000));
  }
  bool replaces() const { return restarts > 0; }

  static void each_field(auto& self, auto&& field) {
    field(
        "disk_wait", self.disk_wait, Range{0, 3600},
        "seconds for which the run waits for space when the disk of output is full, before it ends "
        "with exit code 7; 0: it ends at once (operations.md#full-disks)");
    field(
        "restarts", self.restarts, Range{0, 1000},
        "cluster: processes of a role (rollout, verifier, reward, a reference that does not move) "
        "that are replaced within recovery.window; one more ends the run with exit code 13; 0: "
        "none is replaced, and the first that is lost ends the run with 11 "
        "(reliability.md#replacement)");
    field("window", self.window, Range{1, 86400},
          "cluster: seconds over which recovery.restarts counts");
    field("silence", self.silence, Range{0.5, 3600},
          "cluster: seconds without a message or heartbeat after which a process is taken for "
          "lost");
  }
};

}  // namespace troupe::launch::config
