// The square product by oneDNN, which only benchmarks use.
#pragma once

#include <cstdint>
#include <functional>

namespace troupe::benchmarks {

/// Returns a function that computes one product [size, size] x [size, size] with weights in
/// oneDNN's packed layout; empty if the build did not find oneDNN, or it does not support this
/// processor.
std::function<void()> onednn_product(std::int64_t size, bool bf16, int threads);

}  // namespace troupe::benchmarks
