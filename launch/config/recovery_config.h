// The section `recovery` of a run file: what a run survives.
#pragma once

#include "engine/base/json/fields.h"
#include "engine/base/json/ranges.h"

namespace troupe::launch::config {

struct RecoveryConfig {
  double disk_wait = 60;

  static void each_field(auto& self, auto&& field) {
    field(
        "disk_wait", self.disk_wait, Range{0, 3600},
        "seconds for which the run waits for space when the disk of output is full, before it ends "
        "with exit code 7; 0: it ends at once (operations.md#full-disks)");
  }
};

}  // namespace troupe::launch::config
