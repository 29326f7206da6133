// Ranges of whole numbers. Each has an upper bound that no conversion to a smaller type exceeds.
#pragma once

#include "engine/base/json/fields.h"

namespace troupe {

/// Steps and rows.
constexpr Range count_from_0{0, 1e12}, count_from_1{1, 1e12};
/// Passes over data.
constexpr Range passes_from_0{0, 1e6}, passes_from_1{1, 1e6};
/// Kept checkpoints.
constexpr Range kept_range{0, 1 << 20};
/// Random seeds: whole numbers that have an exact double.
constexpr Range seed_range{0, 9007199254740992};

}  // namespace troupe
