// Shard: the part of a logical tensor that a rank holds.
#pragma once

#include <cstdint>

namespace troupe::engine::parallel {

/// Indices [begin, end) of `full` along `axis` (0: rows, 1: columns). axis -1: the whole tensor, on
/// every rank.
struct Shard {
  int axis = -1;
  std::int64_t begin = 0, end = 0, full = 0;
  /// Whether other ranks of the tp group hold parts that overlap this one (key/value heads on
  /// several ranks): their gradients are summed, and the norm counts them once.
  bool overlaps = false;
  /// Whether this is the first rank that holds this part, whose copy counts in norms. For a whole
  /// tensor: tp index 0.
  bool first = true;

  bool whole() const { return axis < 0; }
  bool operator==(const Shard&) const = default;
};

struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};
/// Part `index` of `parts` of 0 .. full: [full*index/parts, full*(index+1)/parts).
inline Range even_range(std::int64_t full, std::int64_t index, std::int64_t parts) {
  return {full * index / parts, full * (index + 1) / parts};
}

}  // namespace troupe::engine::parallel
