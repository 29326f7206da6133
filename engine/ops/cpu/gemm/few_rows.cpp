#include "engine/ops/cpu/gemm/few_rows.h"

#include <algorithm>

namespace troupe::engine::ops::cpu {
namespace {

/// Columns per range: equally many ranges for each thread; whole groups of the kernel and whole
/// lines of C.
std::int64_t columns_of_part(std::int64_t n, int threads) {
  constexpr std::int64_t maximum = 256, group = 16;
  if (threads == 1) return n;
  const std::int64_t parts =
      threads * std::max<std::int64_t>(3, (n + threads * maximum - 1) / (threads * maximum));
  return std::max<std::int64_t>(2 * group, ((n + parts - 1) / parts + group - 1) / group * group);
}

}  // namespace

void gemm_few_rows(const Context& context, std::span<const GemmArgs> products) {
  std::int64_t n = 0;
  for (const GemmArgs& p : products) n += p.n;
  const std::int64_t columns = columns_of_part(n, context.pool.threads());
  std::vector<GemmArgs>& ranges = context.workspace.few_rows_ranges;
  ranges.clear();
  for (const GemmArgs& p : products) {
    for (std::int64_t j = 0; j < p.n; j += columns) {
      GemmArgs part = p;
      part.n = std::min(columns, p.n - j);
      part.b += j * p.ldb;
      part.c += j;
      ranges.push_back(part);
    }
  }
  std::vector<char> has_rows(static_cast<std::size_t>(context.pool.threads()));
  for (std::int64_t k = 0; k < products[0].k; k += few_rows_kc) {
    std::fill(has_rows.begin(), has_rows.end(), 0);
    context.pool.run(std::ssize(ranges), [&](std::int64_t item, int worker) {
      char& packed = has_rows[static_cast<std::size_t>(worker)];
      context.kernels.gemm_nt_few_rows(ranges[static_cast<std::size_t>(item)], k,
                                       context.gemm_memory(worker), packed == 0);
      packed = 1;
    });
  }
}

}  // namespace troupe::engine::ops::cpu
