// ContextPart: the rows of a pass that this rank computes where a context-parallel group divides
// them. Every module but attention works row by row, on the rank's own rows; attention exchanges
// rows for heads (head_exchange.h), sends keys and values around a ring (ring_attention.h), or
// both.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/collectives/tensor_group.h"
#include "engine/nn/shared_rows.h"
#include "engine/parallel/communicator.h"
#include "engine/parallel/shard.h"

namespace troupe::engine::nn {

/// A context-parallel group as rings of groups that exchange heads: rank = ring rank * heads' size
/// + heads' rank. nullptr: a group of one.
struct ContextGroups {
  parallel::Communicator* all = nullptr;
  ops::Device* device = nullptr;
  std::unique_ptr<collectives::TensorGroup> heads, ring;
  int inner = 1;     ///< size of the inner rings of `ring` (ring_attention.h)
  int kv_heads = 1;  ///< the largest Device::parallel_kv_heads() of the ranks of `ring`
};
/// `ulysses`: size of the groups that exchange heads; divides the group. `inner`: size of the inner
/// rings; divides the size of a ring. Collective.
ContextGroups context_groups(parallel::Communicator& all, ops::Device& device, int ulysses,
                             int inner = 1);

/// The ranks of a ring divide the rows of the layout (ring_chunk()); those that exchange heads
/// divide the rows of their place in the ring, or all distinct rows of the pass without a ring, in
/// contiguous parts. A part may be empty. The tokens of a micro-batch lie in their order, so a
/// sequence may be on several ranks, and a rank may have several sequences.
struct ContextPart {
  const ContextGroups* groups = nullptr;
  std::vector<std::int64_t> bounds;       ///< [heads' size + 1] parts of the rows below
  std::vector<std::int32_t> layout_rows;  ///< [own rows] the row of the layout of each own row
  ops::Indices positions;                 ///< [own rows] its position in its sequence
  std::vector<std::int32_t> places;       ///< [T] own row of each row of the layout, or -1
  /// With a ring: the rows of this rank's place in it, as sequences of the pass, some of which may
  /// be empty, and the lengths of the whole sequences.
  ops::PreparedLayout ring_layout;
  std::vector<std::int32_t> lengths;

  int rank() const { return groups->heads ? groups->heads->rank() : 0; }
  int ranks() const { return groups->heads ? groups->heads->size() : 1; }
  parallel::Range rows_of(int rank) const {
    return {bounds[static_cast<std::size_t>(rank)], bounds[static_cast<std::size_t>(rank) + 1]};
  }
  parallel::Range own() const { return rows_of(rank()); }
  std::int64_t rows() const { return bounds.back(); }
};

/// The division of a pass. Parts of contiguous rows differ by one row at most. Rows cannot be
/// shared with a ring.
ContextPart context_part(const ContextGroups& groups, const ops::Layout& layout,
                         const SharedRows* shared);

/// Positions of a sequence of this length in one of the 2 * ranks chunks of a ring; all start at
/// even positions. Ring rank r has the chunks r and 2 * ranks - 1 - r: equally many visible keys.
parallel::Range ring_chunk(std::int64_t length, int chunk, int ranks);

/// The values of own rows, of one value per row of the layout.
template <class T>
std::vector<T> own_values(const ContextPart& part, std::span<const T> values) {
  std::vector<T> own;
  own.reserve(part.layout_rows.size());
  for (const auto row : part.layout_rows) own.push_back(values[static_cast<std::size_t>(row)]);
  return own;
}

}  // namespace troupe::engine::nn
