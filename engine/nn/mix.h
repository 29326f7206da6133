// A model that follows another at a distance: the moving average of weights that TR-DPO's reference
// is.
#pragma once

#include "engine/nn/parameters.h"

namespace troupe::engine::nn {

/// into <- (1 - share) into + share from, value by value in f32: the same whatever the layout. Both
/// are models of one shape and grid.
void mix(const Parameters& from, double share, Parameters& into);

}  // namespace troupe::engine::nn
