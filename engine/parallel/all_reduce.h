// Reductions over a Communicator, in place, in the order of the ranks: equal layouts give equal
// bits, run after run, whatever the transport.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/parallel/communicator.h"

namespace troupe::engine::parallel {

/// values[i] becomes ((rank 0 + rank 1) + rank 2) + ... Equal lengths on all ranks.
void sum(Communicator& group, std::span<float> values, std::string_view what);
void sum(Communicator& group, std::span<double> values, std::string_view what);
/// values[i] becomes the largest of the ranks'; a NaN of any rank stays.
void max(Communicator& group, std::span<float> values, std::string_view what);

/// What every rank gave, by rank. Lengths may differ; together at most `limit` bytes (Errc::full,
/// on every rank alike).
std::vector<std::string> gather_strings(Communicator& group, std::string_view mine,
                                        std::string_view what,
                                        std::size_t limit = std::size_t{1} << 34);
/// Every rank's values, one after the other, by rank. Lengths may differ.
std::vector<float> gather_floats(Communicator& group, std::span<const float> mine,
                                 std::string_view what);
/// Returns when every rank has come.
void barrier(Communicator& group, std::string_view what);

}  // namespace troupe::engine::parallel
