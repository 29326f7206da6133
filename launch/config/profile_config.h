// The section `profile` of a run file: MindSpeed's --profile-... options.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/fields.h"
#include "engine/base/ranges.h"

namespace troupe::launch::config {

/// Each level includes the ones before it.
enum class ProfileLevel { level0, level1, level2 };
constexpr std::array<std::string_view, 3> names_of(ProfileLevel) {
  return {"level0", "level1", "level2"};
}

struct ProfileConfig {
  bool enabled = false;
  std::int64_t step_start = 10, step_end = 12;  ///< [start, end); steps count from 1
  std::vector<double> ranks{-1};
  ProfileLevel level = ProfileLevel::level0;
  bool with_cpu = false, with_stack = false, with_memory = false, record_shapes = false;
  std::string save_path;

  static void each_field(auto& self, auto&& field) {
    field("enabled", self.enabled,
          "profile some steps: write a trace and an operator table; also --profile, and each key "
          "below as an option (--profile-step-start)");
    field("step_start", self.step_start, count_from_1, "first profiled step; steps count from 1");
    field("step_end", self.step_end, count_from_1, "first step after the profiled ones");
    field("ranks", self.ranks, Range{-1, 1023}, "profiled ranks of each group; -1: all");
    field("level", self.level,
          "level0: operators; level1: also communication; level2: also hardware counters "
          "(instructions, cycles, cache misses)");
    field("with_cpu", self.with_cpu, "record CPU utilization of the process in each span");
    field("with_stack", self.with_stack,
          "record the phases around each operator (forward_backward, forward, head, ...), one "
          "table row each");
    field("with_memory", self.with_memory, "record tensor memory over time and its peak");
    field("record_shapes", self.record_shapes, "record operand shapes, one table row each");
    field("save_path", self.save_path, "output directory; empty: profile in output");
  }
};

}  // namespace troupe::launch::config
