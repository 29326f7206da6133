// Gradients of a group of ranks: reduced once per update, and measured so that each logical element
// counts once.
#pragma once

#include <string>

#include "engine/collectives/tensor_group.h"
#include "engine/nn/parameters.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::nn {

/// Sums the gradients over the group: parts that several tensor-parallel ranks hold over those
/// ranks, then everything over the replicas of `dp`. nullptr: no such group. Sums are in the order
/// of the ranks.
void all_reduce_gradients(Parameters& parameters, parallel::Communicator* tp,
                          parallel::Communicator* dp);

/// Sums the gradient of a table that the first and the last rank of `pp` both have (a tied
/// embedding): call it on these two, before all_reduce_gradients(). Both get the same bits.
void sum_tied_gradient(ops::Device& device, const Parameter& table, collectives::TensorGroup& pp);

/// Sum of squares of the logical gradient, in f64; the same bits on every rank. `by_tensor`: a sum
/// over tensors, without copies that another rank counts (Shard::first); with tp it always is.
double sum_of_squares(Parameters& parameters, parallel::Communicator* tp, bool by_tensor = false);

/// Name of the first parameter whose gradient is not finite on some rank, or "".
std::string first_nonfinite_parameter(Parameters& parameters, parallel::Communicator* tp);

}  // namespace troupe::engine::nn
