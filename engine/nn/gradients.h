// Gradients of a group of ranks: reduced once per update, and measured so that each logical element
// counts once.
#pragma once

#include <string>

#include "engine/nn/parameters.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::nn {

/// Sums the gradients over the group: parts that several tensor-parallel ranks hold over those
/// ranks, then everything over the replicas of `dp`. nullptr: no such group. Sums are in the order
/// of the ranks.
void all_reduce_gradients(Parameters& parameters, parallel::Communicator* tp,
                          parallel::Communicator* dp);

/// Sum of squares of the logical gradient, in f64; the same bits on every rank.
double sum_of_squares(Parameters& parameters, parallel::Communicator* tp);

/// Name of the first parameter whose gradient is not finite on some rank, or "".
std::string first_nonfinite_parameter(Parameters& parameters, parallel::Communicator* tp);

}  // namespace troupe::engine::nn
