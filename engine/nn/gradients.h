// Gradients of a group: added up over its ranks once an update, and measured so that each logical
// element counts once.
#pragma once

#include <string>

#include "engine/nn/parameters.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::nn {

/// Makes the gradients those of the whole group: parts that several tensor-parallel ranks share are
/// summed over their holders, then everything over the replicas of `dp`. nullptr: no such group.
/// Sums are in the order of the ranks.
void sum_gradients(Parameters& parameters, parallel::Communicator* tp, parallel::Communicator* dp);

/// The sum of squares of the logical gradient, in f64; the same bits on every rank.
double sum_of_squares(Parameters& parameters, parallel::Communicator* tp);

/// The first parameter with a gradient that is not finite on any rank, or "".
std::string first_not_finite(Parameters& parameters, parallel::Communicator* tp);

}  // namespace troupe::engine::nn
