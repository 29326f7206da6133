#include "benchmarks/support/ceiling.h"

#include <algorithm>
#include <functional>

#include "benchmarks/support/clock.h"
#include "benchmarks/support/onednn.h"

namespace troupe::benchmarks {

struct ProductCeiling::Parts {
  std::int64_t size;
  std::function<void()> ours, theirs;
};

namespace {

// Product of activations [M, K] and a weight [N, K], as in a model's layers.
std::function<void()> our_product(engine::ops::Device& device, std::int64_t size,
                                  engine::ops::Precision precision) {
  Tensor a = device.empty({size, size}), b = device.empty({size, size}),
         c = device.empty({size, size});
  fill_random(device, a, 1, 1);
  fill_random(device, b, 1, 2);
  device.fill(c, 0);
  return [&device, a, b, c, precision]() mutable {
    device.gemm(a, b, c, {.transpose_b = true, .precision = precision});
  };
}

// Returns GFLOP/s of the best of three calls.
double rate(std::int64_t size, const std::function<void()>& product) {
  double best = seconds(product);
  for (int i = 0; i < 2; ++i) best = std::min(best, seconds(product));
  return 2e-9 * static_cast<double>(size * size * size) / best;
}

}  // namespace

ProductCeiling::ProductCeiling(engine::ops::Device& device, const Options& options)
    : device_(device), options_(options) {
}
ProductCeiling::~ProductCeiling() = default;

double ProductCeiling::measure() {
  if (!parts_) {
    const std::int64_t size = options_.tiny() ? 256 : 2048;
    parts_ =
        std::make_unique<Parts>(Parts{size, our_product(device_, size, options_.precision),
                                      onednn_product(size, options_.bf16(), options_.threads)});
    parts_->ours();
    if (parts_->theirs) parts_->theirs();
  }
  const double mine = rate(parts_->size, parts_->ours),
               other = parts_->theirs ? rate(parts_->size, parts_->theirs) : 0;
  ours_ = std::max(ours_, mine);
  theirs_ = std::max(theirs_, other);
  return std::max(mine, other);
}

}  // namespace troupe::benchmarks
