// How far the cores are from each other: on one cache complex, or on two, as a host may move
// virtual processors from minute to minute.
#pragma once

#include <optional>

namespace troupe::benchmarks {

/// Nanoseconds that a cache line takes from one core to another, the first two that this process
/// may use: the median of batches of handovers, a tenth of a second at most. None where there is
/// one core only.
std::optional<double> handover();

}  // namespace troupe::benchmarks
