// Shard: which part of a logical tensor this rank holds.
#pragma once

#include <cstdint>

namespace troupe::engine::parallel {

/// Indices [begin, end) of `full` along `axis` (0: rows, 1: columns). axis -1: all of the tensor,
/// on every rank.
struct Shard {
  int axis = -1;
  std::int64_t begin = 0, end = 0, full = 0;
  /// Other ranks of the tp group hold parts that overlap this one (key/value heads shared by
  /// several ranks): gradients of what is shared are summed over the holders, and its norm is
  /// counted once.
  bool overlaps = false;
  /// Of the ranks that hold this part, this is the first: its copy is the one that counts in norms.
  /// Of a whole tensor: tp index 0.
  bool first = true;

  bool whole() const { return axis < 0; }
  bool operator==(const Shard&) const = default;
};

struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};
/// Part `index` of `parts` of 0 .. full, as even as it goes: [full*index/parts,
/// full*(index+1)/parts).
inline Range even_range(std::int64_t full, std::int64_t index, std::int64_t parts) {
  return {full * index / parts, full * (index + 1) / parts};
}

}  // namespace troupe::engine::parallel
