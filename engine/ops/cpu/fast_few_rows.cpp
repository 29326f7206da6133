// Products in f32 of the few rows that generation has: weights are read where they lie, in parts of
// their columns.
#include <algorithm>

#include "engine/ops/cpu/fast_device.h"

namespace troupe::engine::ops {
namespace {

/// Columns that a thread takes at a time: as many for each thread, where there are several; whole
/// groups of the kernel's, and of lines of C.
std::int64_t columns_of_part(std::int64_t n, int threads) {
  constexpr std::int64_t most = 256, group = 16;
  if (threads == 1) return n;
  const std::int64_t parts =
      threads * std::max<std::int64_t>(3, (n + threads * most - 1) / (threads * most));
  return std::max<std::int64_t>(2 * group, ((n + parts - 1) / parts + group - 1) / group * group);
}

}  // namespace

void FastDevice::products_of_few_rows(std::span<const Product> products) {
  std::int64_t n = 0;
  for (const Product& p : products) n += p.n;
  const std::int64_t columns = columns_of_part(n, pool_.threads());
  few_rows_.clear();
  for (const Product& p : products) {
    for (std::int64_t j = 0; j < p.n; j += columns) {
      Product part = p;
      part.n = std::min(columns, p.n - j), part.b += j * p.ldb, part.c += j;
      few_rows_.push_back(part);
    }
  }
  std::vector<char> has_rows(static_cast<std::size_t>(pool_.threads()));
  for (std::int64_t k = 0; k < products[0].k; k += direct_depth) {
    std::fill(has_rows.begin(), has_rows.end(), 0);
    pool_.run(std::ssize(few_rows_), [&](std::int64_t item, int worker) {
      char& packed = has_rows[static_cast<std::size_t>(worker)];
      kernels_.direct_product(few_rows_[static_cast<std::size_t>(item)], k, scratch(worker),
                              packed == 0);
      packed = 1;
    });
  }
}

}  // namespace troupe::engine::ops
