#include "launch/profile/fields.h"

#include <algorithm>
#include <cmath>

#include "engine/base/text.h"

namespace troupe::launch {
namespace {

constexpr Field table[] = {
    {"profile.enabled", [](RunConfig& c) { return Slot(&c.profile.enabled); },
     "write a trace and a table of operators for some steps; also given as --profile, and each key "
     "below as an option of its name "
     "(--profile-step-start)",
     "", any},
    {"profile.step_start", [](RunConfig& c) { return Slot(&c.profile.step_start); },
     "the first step that is profiled; steps count from 1", "", at_least_1},
    {"profile.step_end", [](RunConfig& c) { return Slot(&c.profile.step_end); },
     "the step after the last", "", at_least_1},
    {"profile.ranks",
     [](RunConfig& c) { return Slot(&c.profile.ranks); },
     "ranks of each group that are profiled; -1: all",
     "",
     {-1, 1023}},
    {"profile.level", [](RunConfig& c) { return Slot(&c.profile.level); },
     "level0: operators; level1: and communication; level2: and hardware counters (instructions, "
     "cycles, cache misses)",
     "level0|level1|level2", any},
    {"profile.with_cpu", [](RunConfig& c) { return Slot(&c.profile.with_cpu); },
     "how many cores the process kept busy in each span", "", any},
    {"profile.with_stack", [](RunConfig& c) { return Slot(&c.profile.with_stack); },
     "the phases around each operator (forward_backward, forward, head, ...): a row of the table "
     "for each",
     "", any},
    {"profile.with_memory", [](RunConfig& c) { return Slot(&c.profile.with_memory); },
     "bytes of all tensors over time, and their peak", "", any},
    {"profile.record_shapes", [](RunConfig& c) { return Slot(&c.profile.record_shapes); },
     "the shapes of each operator's operands: a row of the table for each", "", any},
    {"profile.save_path", [](RunConfig& c) { return Slot(&c.profile.save_path); },
     "folder of the files; empty: profile in output", "", any},
};

}  // namespace

std::span<const Field> profile_fields() {
  return table;
}

void judge_profile(Judging& j) {
  const ProfileConfig& p = j.config.profile;
  if (!p.enabled) {
    for (const Field& field : profile_fields())
      if (j.given(field.key) && field.key != "profile.enabled")
        j.unused(field.key, "nothing is profiled; set profile.enabled (--profile)");
    return;
  }
  if (p.step_start >= 1 && p.step_end <= p.step_start)
    j.problem(
        cat(j.named("profile.step_end"), ": must be above profile.step_start = ", p.step_start,
            ", for it is the step after the last; the nearest valid value is ", p.step_start + 1));
  if (p.ranks.empty())
    j.problem(cat(j.named("profile.ranks"), ": name at least one rank, or -1 for all"));
  for (const double rank : p.ranks)
    if (rank != std::floor(rank))
      j.problem(cat(j.named("profile.ranks"), ": a rank is a whole number, found ", rank));
  if (p.ranks.size() > 1 && std::ranges::count(p.ranks, -1.0) > 0)
    j.problem(cat(j.named("profile.ranks"), ": -1 means all ranks and stands alone"));
  if (j.config.train.steps > 0 && p.step_start > j.config.train.steps)
    j.warn(cat(j.named("profile.step_start"), ": the run of ", j.config.train.steps,
               " steps ends before; nothing will be profiled"));
}

Result<> check_profile_ranks(const RunConfig& config, int ranks) {
  if (!config.profile.enabled) return {};
  for (const double rank : config.profile.ranks)
    if (rank >= ranks)
      return fail(Errc::usage, cat("profile.ranks: there is no rank ", rank, "; ",
                                   ranks == 1 ? std::string("the run has rank 0 alone")
                                              : cat("the largest group has ranks 0 to ", ranks - 1),
                                   "; -1 means all"));
  return {};
}

}  // namespace troupe::launch
