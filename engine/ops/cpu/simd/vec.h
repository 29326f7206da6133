// Vec: sixteen f32 lanes. Each instruction set has its own, with the same members (vec_baseline.h,
// vec_avx2.h, vec_avx512.h); kernels are templates over it.
#pragma once

namespace troupe::engine::ops::cpu {

/// The mask of all sixteen lanes, known at compile time: masked stores, even full ones, take about
/// twice the time.
struct AllLanes {};

}  // namespace troupe::engine::ops::cpu
