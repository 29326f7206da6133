// Groups of heads that go around a ring one after the other (ring_attention.h). Heads do not depend
// on each other, so groups change no bit, and a rank holds the travelling keys, values and
// gradients of one group instead of all heads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/nn/context_part.h"

namespace troupe::engine::nn {

/// Consecutive heads.
struct HeadRange {
  std::int64_t first, count, all;
  bool whole() const { return count == all; }
};

/// Key/value heads, and the query heads that read them.
struct HeadGroup {
  HeadRange queries, keys;
  ops::AttentionShape shape;  ///< of these heads
};

/// The same on every rank of the ring. One group if the keys of a rank are few: the time of short
/// messages is that of their number.
std::vector<HeadGroup> head_groups(const ContextPart& part, const ops::AttentionShape& shape);

/// x [S, heads.all * K] -> [rows, heads.count * K], which is x itself if it has these rows and
/// heads only. `rows` ascend.
Tensor gather_heads(ops::Device& device, const Tensor& x, std::span<const std::int32_t> rows,
                    const HeadRange& heads);
/// The heads of all rows.
Tensor gather_heads(ops::Device& device, const Tensor& x, const HeadRange& heads);
/// Adds some [rows, heads.count * K] to the rows and heads of `all` [S, heads.all * K].
void add_heads(ops::Device& device, const Tensor& some, std::span<const std::int32_t> rows,
               const HeadRange& heads, Tensor& all);
/// Assigns the heads of all rows.
void set_heads(ops::Device& device, const Tensor& some, const HeadRange& heads, Tensor& all);

}  // namespace troupe::engine::nn
