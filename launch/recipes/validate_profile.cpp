#include "launch/recipes/validate_profile.h"

#include <algorithm>

#include "engine/base/text/text.h"

namespace troupe::launch::recipes {

void validate_profile(Validation& v) {
  const config::ProfileConfig& p = v.config.profile;
  if (!p.enabled) {
    v.unused_section("profile", "profile.enabled",
                     "nothing is profiled; set profile.enabled (--profile)");
    return;
  }
  if (p.step_start >= 1 && p.step_end <= p.step_start)
    v.problem(
        cat(v.named("profile.step_end"), ": must be above profile.step_start = ", p.step_start,
            ", for it is the step after the last; the nearest valid value is ", p.step_start + 1));
  if (p.ranks.empty())
    v.problem(cat(v.named("profile.ranks"), ": name at least one rank, or -1 for all"));
  if (p.ranks.size() > 1 && std::ranges::count(p.ranks, -1) > 0)
    v.problem(cat(v.named("profile.ranks"), ": -1 means all ranks and stands alone"));
  if (v.config.train.steps > 0 && p.step_start > v.config.train.steps)
    v.warn(cat(v.named("profile.step_start"), ": the run of ", v.config.train.steps,
               " steps ends before; nothing will be profiled"));
}

Result<> check_profile_ranks(const config::RunConfig& config, int ranks) {
  if (!config.profile.enabled) return {};
  for (const std::int32_t rank : config.profile.ranks)
    if (rank >= ranks)
      return fail(Errc::usage, cat("profile.ranks: there is no rank ", rank, "; ",
                                   ranks == 1 ? std::string("the run has rank 0 alone")
                                              : cat("the largest group has ranks 0 to ", ranks - 1),
                                   "; -1 means all"));
  return {};
}

}  // namespace troupe::launch::recipes
