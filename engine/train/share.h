// How the replicas of a data-parallel group share a batch.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/data/experience.h"

namespace troupe::engine::train {

/// The sequences of one rank, in rising order: whole units.
using Share = std::vector<std::int32_t>;

/// Shares of about equally many tokens: the longest unit first, each to the rank with the fewest tokens so far. Every sequence is in one
/// share; a share may be empty. The same on every rank.
std::vector<Share> share_out(const data::Experience& batch, int ranks);

}  // namespace troupe::engine::train
