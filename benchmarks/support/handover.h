// Latency between cores: on one cache complex or on two, which may change as a host moves virtual
// processors.
#pragma once

#include <optional>

namespace troupe::benchmarks {

/// Returns the nanoseconds in which a cache line moves between the first two cores of this process:
/// the median of batches of handovers, in at most a tenth of a second; nullopt on a single core.
std::optional<double> handover();

}  // namespace troupe::benchmarks
