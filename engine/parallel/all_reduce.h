// Reductions and gathers over a Communicator. Reductions work in place, in the order of the ranks:
// equal layouts give equal bits, whatever the transport.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/parallel/communicator.h"

namespace troupe::engine::parallel {

/// Replaces values[i] by ((rank 0 + rank 1) + rank 2) + ... Equal lengths on all ranks.
void all_reduce_sum(Communicator& group, std::span<float> values, std::string_view what);
void all_reduce_sum(Communicator& group, std::span<double> values, std::string_view what);
/// Replaces values[i] by the maximum over the ranks; a NaN of any rank propagates.
void all_reduce_max(Communicator& group, std::span<float> values, std::string_view what);

/// Every rank's string, by rank. Lengths may differ; their sum is at most `limit` bytes (otherwise
/// Errc::full on every rank).
std::vector<std::string> gather_strings(Communicator& group, std::string_view mine,
                                        std::string_view what,
                                        std::size_t limit = std::size_t{1} << 34);
/// Every rank's values, concatenated by rank. Lengths may differ.
std::vector<float> gather_floats(Communicator& group, std::span<const float> mine,
                                 std::string_view what);
/// Returns when every rank has called it.
void barrier(Communicator& group, std::string_view what);

}  // namespace troupe::engine::parallel
