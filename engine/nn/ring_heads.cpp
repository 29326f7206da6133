#include "engine/nn/ring_heads.h"

#include <algorithm>
#include <numeric>

namespace troupe::engine::nn {
namespace {

/// Keys of a group of a rank. Messages of this size take as long as their bytes.
constexpr std::int64_t group_bytes = std::int64_t{512} << 10;

// Rows of [S * all, K] for rows of [S, all * K].
std::vector<std::int32_t> rows_of_heads(std::span<const std::int32_t> rows,
                                        const HeadRange& heads) {
  std::vector<std::int32_t> out;
  out.reserve(rows.size() * static_cast<std::size_t>(heads.count));
  for (const auto row : rows)
    for (std::int64_t head = 0; head < heads.count; ++head)
      out.push_back(static_cast<std::int32_t>(row * heads.all + heads.first + head));
  return out;
}

std::vector<std::int32_t> all_rows(const Tensor& x) {
  std::vector<std::int32_t> rows(static_cast<std::size_t>(x.shape()[0]));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

// Views x [rows, heads * K] as [rows * heads, K].
Tensor by_head(const Tensor& x, std::int64_t heads) {
  return x.view({x.shape()[0] * heads, x.shape()[1] / heads});
}

}  // namespace

std::vector<HeadGroup> head_groups(const ContextPart& part, const ops::AttentionShape& shape) {
  const std::int64_t rows = std::accumulate(part.lengths.begin(), part.lengths.end(),
                                            std::int64_t{0}) /
                            part.groups->ring->size(),
                     head_bytes = std::max<std::int64_t>(1, rows * shape.head_size * 4);
  const int queries = shape.heads / shape.kv_heads;
  const auto fitting =
      static_cast<int>(std::min<std::int64_t>(group_bytes / head_bytes, shape.kv_heads));
  const int most = std::clamp(std::max(fitting, part.groups->kv_heads), 1, shape.kv_heads),
            count = (shape.kv_heads + most - 1) / most;
  std::vector<HeadGroup> groups;
  for (int i = 0; i < count; ++i) {
    const auto keys = parallel::even_range(shape.kv_heads, i, count);
    HeadGroup group{{queries * keys.begin, queries * keys.size(), shape.heads},
                    {keys.begin, keys.size(), shape.kv_heads},
                    shape};
    group.shape.heads = static_cast<int>(group.queries.count);
    group.shape.kv_heads = static_cast<int>(group.keys.count);
    if (!shape.alibi_slopes.empty()) {
      const auto first = shape.alibi_slopes.begin() + group.queries.first;
      group.shape.alibi_slopes.assign(first, first + group.queries.count);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

Tensor gather_heads(ops::Device& device, const Tensor& x, std::span<const std::int32_t> rows,
                    const HeadRange& heads) {
  const bool every_row = std::ssize(rows) == x.shape()[0];
  if (every_row && heads.whole()) return x;
  Tensor some = device.empty({std::ssize(rows), x.shape()[1] / heads.all * heads.count});
  if (heads.whole()) {
    device.gather_rows(x, device.indices(rows), some);
  } else {
    Tensor to = by_head(some, heads.count);
    device.gather_rows(by_head(x, heads.all), device.indices(rows_of_heads(rows, heads)), to);
  }
  return some;
}

Tensor gather_heads(ops::Device& device, const Tensor& x, const HeadRange& heads) {
  return gather_heads(device, x, all_rows(x), heads);
}

void add_heads(ops::Device& device, const Tensor& some, std::span<const std::int32_t> rows,
               const HeadRange& heads, Tensor& all) {
  if (heads.whole()) return device.scatter_add_rows(some, device.indices(rows), all);
  Tensor to = by_head(all, heads.all);
  device.scatter_add_rows(by_head(some, heads.count), device.indices(rows_of_heads(rows, heads)),
                          to);
}

void set_heads(ops::Device& device, const Tensor& some, const HeadRange& heads, Tensor& all) {
  if (heads.whole()) return device.copy(some, all);
  Tensor to = by_head(all, heads.all);
  device.scatter_rows(by_head(some, heads.count),
                      device.indices(rows_of_heads(all_rows(all), heads)), to);
}

}  // namespace troupe::engine::nn
