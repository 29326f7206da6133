// The same square product by oneDNN, which only benchmarks know.
#pragma once

#include <cstdint>
#include <functional>

namespace troupe::benchmarks {

/// A function that computes one product [size, size] x [size, size] with weights in the layout that
/// oneDNN wants; none where oneDNN was not there when this was built, or cannot do it on this
/// processor.
std::function<void()> onednn_product(std::int64_t size, bool bf16, int threads);

}  // namespace troupe::benchmarks
