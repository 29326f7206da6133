// What limited a run with async.mode on, from the times in which each side had no work.
#pragma once

#include <cstdint>
#include <string>

#include "launch/journal/async_times.h"

namespace troupe::launch::run {

/// One line: the shares of idle time, whether sampling or training is the slower side, and which
/// settings to change. `take_turns`: the rollouts have no processors of their own. "" if the run
/// was too short to tell.
std::string overlap_summary(const journal::IdleSeconds& idle, std::int64_t eta, bool take_turns);

}  // namespace troupe::launch::run
