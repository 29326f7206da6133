#include "engine/nn/context_part.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/base/errors/check.h"

namespace troupe::engine::nn {
namespace {

// Rows of the layout at the place of this rank in the ring, sequence by sequence.
std::vector<std::int32_t> rows_in_ring(const ContextGroups& groups, const ops::Layout& layout,
                                       ContextPart& part) {
  const int rank = groups.ring->rank(), ranks = groups.ring->size();
  std::vector<std::int32_t> rows;
  ops::Layout own{{0}, {}};
  for (std::size_t n = 0; n + 1 < layout.offsets.size(); ++n) {
    const std::int32_t length = layout.offsets[n + 1] - layout.offsets[n];
    part.lengths.push_back(length);
    for (const int chunk : {rank, 2 * ranks - 1 - rank}) {
      const parallel::Range positions = ring_chunk(length, chunk, ranks);
      for (auto position = positions.begin; position < positions.end; ++position) {
        rows.push_back(layout.offsets[n] + static_cast<std::int32_t>(position));
        own.positions.push_back(static_cast<std::int32_t>(position));
      }
    }
    own.offsets.push_back(static_cast<std::int32_t>(rows.size()));
  }
  part.ring_layout = groups.device->prepare(std::move(own));
  return rows;
}

// The rows that the ranks which exchange heads divide.
std::vector<std::int32_t> divided_rows(const ContextGroups& groups, const ops::Layout& layout,
                                       const SharedRows* shared, ContextPart& part) {
  if (groups.ring) return rows_in_ring(groups, layout, part);
  if (shared != nullptr) return shared->index.host;
  std::vector<std::int32_t> all(layout.positions.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

int largest(parallel::Communicator& group, int value) {
  std::vector<int> all(static_cast<std::size_t>(group.size()));
  group.all_gather(std::as_bytes(std::span(&value, 1)), std::as_writable_bytes(std::span(all)),
                   "the heads that each rank of a ring computes at a time");
  return std::ranges::max(all);
}

}  // namespace

ContextGroups context_groups(parallel::Communicator& all, ops::Device& device, int ulysses,
                             int inner) {
  check(ulysses >= 1 && all.size() % ulysses == 0, "context_groups: the groups differ in size");
  check(inner >= 1 && all.size() / ulysses % inner == 0, "context_groups: uneven inner rings");
  ContextGroups groups{.all = &all, .device = &device, .inner = inner};
  const auto split = [&](int color, int key) {
    return collectives::make_tensor_group(device, all.split(color, key));
  };
  if (ulysses > 1) groups.heads = split(all.rank() / ulysses, all.rank() % ulysses);
  if (ulysses < all.size()) groups.ring = split(all.rank() % ulysses, all.rank() / ulysses);
  if (groups.ring) groups.kv_heads = largest(groups.ring->ranks(), device.parallel_kv_heads());
  return groups;
}

parallel::Range ring_chunk(std::int64_t length, int chunk, int ranks) {
  const parallel::Range pairs = parallel::even_range((length + 1) / 2, chunk, 2 * ranks);
  return {std::min(2 * pairs.begin, length), std::min(2 * pairs.end, length)};
}

ContextPart context_part(const ContextGroups& groups, const ops::Layout& layout,
                         const SharedRows* shared) {
  check(!groups.ring || shared == nullptr, "context_part: shared rows in a ring");
  ContextPart part;
  part.groups = &groups;
  const auto rows = divided_rows(groups, layout, shared, part);
  part.bounds = {0};
  for (int rank = 0; rank < part.ranks(); ++rank)
    part.bounds.push_back(parallel::even_range(std::ssize(rows), rank, part.ranks()).end);
  const auto [begin, end] = part.own();
  part.layout_rows.assign(rows.begin() + begin, rows.begin() + end);
  part.positions = groups.device->indices(own_values<std::int32_t>(part, layout.positions));
  part.places.assign(layout.positions.size(), -1);
  for (std::size_t i = 0; i < part.layout_rows.size(); ++i)
    part.places[static_cast<std::size_t>(part.layout_rows[i])] = static_cast<std::int32_t>(i);
  if (shared == nullptr) return part;
  for (std::size_t t = 0; t < part.places.size(); ++t)
    part.places[t] = part.places[static_cast<std::size_t>(
        shared->index.host[static_cast<std::size_t>(shared->inverse.host[t])])];
  return part;
}

}  // namespace troupe::engine::nn
