// The section `recovery` of a run file: the replacement of processes of `troupe launch`.
#pragma once

#include <chrono>
#include <cstdint>

#include "engine/base/json/fields.h"
#include "engine/base/json/ranges.h"

namespace troupe::launch::config {

struct RecoveryConfig {
  std::int64_t restarts = 3;
  std::int64_t window = 60;
  double silence = 5;

  std::chrono::milliseconds silence_time() const {
    return std::chrono::milliseconds(static_cast<std::int64_t>(silence * 1000));
  }
  bool replaces() const { return restarts > 0; }

  static void each_field(auto& self, auto&& field) {
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
