// What every kind of lanes has in common.
#pragma once

namespace troupe::engine::ops {

/// The mask of all sixteen lanes, known when the kernel is compiled: masked stores, full ones too,
/// take about twice the time.
struct Every {};

}  // namespace troupe::engine::ops
