// The way back of attention.
#include "engine/ops/cpu/packed_attention.h"

namespace troupe::engine::ops {

/// Many, as each element of dk and dv is loaded and stored once a block, but so few that their
/// weights stay in the second-level cache. In f32 part of the order in which heads are added.
std::int64_t PackedAttention::block_rows(const Part& part) const {
  constexpr std::int64_t least = 4, most = 8, most_weights = 131072;
  const std::int64_t all = part.keys.count();
  if (!in_pairs())
    return std::clamp<std::int64_t>(
        65536 / (shape_.window == 0 ? all : std::min<std::int64_t>(all, shape_.window)), 1, 48);
  const std::int64_t keys =
      shape_.window == 0 ? all : std::min(all, shape_.window + most * strip_rows());
  return std::clamp(most_weights / keys / strip_rows(), least, most) * strip_rows();
}

PackedAttention::Block PackedAttention::block_of(const Part& part, std::int64_t head,
                                                 std::int64_t row, std::int64_t rows) const {
  Block block{strip_of(part, head, row, rows), {}, {}};
  const std::int64_t first = block.all.keys.first, tile = with_.rows;
  for (std::int64_t i = 0; i < rows; i += strip_rows()) {
    Strip strip = strip_of(part, head, row + i, std::min(strip_rows(), rows - i));
    // Weights of whole tiles of keys, from a whole panel on.
    strip.keys.first -= (strip.keys.first - first) % tile;
    strip.keys.first -= (strip.keys.first - first) % panel_columns;
    // What strips see moves on, so that those that see a key follow each other.
    if (i > 0) strip.keys.end = std::max(strip.keys.end, block.strips.back().keys.end);
    block.strips.push_back(strip);
    block.ends.push_back(
        std::min(block.all.keys.end, first + (strip.keys.end - first + tile - 1) / tile * tile));
  }
  for (std::size_t i = block.strips.size() - 1; i > 0; --i)
    block.strips[i - 1].keys.first =
        std::min(block.strips[i - 1].keys.first, block.strips[i].keys.first);
  return block;
}

void PackedAttention::pack_weights(const Block& block, std::size_t i, const float* weights,
                                   std::int64_t pitch, float* tiles) const {
  const Strip& strip = block.strips[i];
  const std::int64_t first = block.all.keys.first, steps = with_.steps(block.all.rows),
                     before = with_.steps(strip_rows()) * static_cast<std::int64_t>(i);
  for (std::int64_t key = (strip.keys.first - first + with_.rows - 1) / with_.rows * with_.rows;
       key < block.ends[i] - first; key += with_.rows) {
    const std::int64_t keys = std::min(with_.rows, block.all.keys.count() - key);
    with_.pack({weights + key, pitch, keys, strip.rows, keys, true},
               tiles + key * steps + before * keys);
  }
}

void PackedAttention::over_rows(const Part& part, const Block& block, const float* tiles,
                                const float* right, float* panels, float* to) const {
  const std::int64_t first = block.all.keys.first, steps = with_.steps(block.all.rows),
                     strip_steps = with_.steps(strip_rows());
  const auto count = static_cast<std::int64_t>(block.strips.size());
  to += (layout_.offsets[part.sequence] + first) * width() + part.kv_head * size();
  for (std::int64_t column = 0; column < size(); column += panel_columns) {
    const std::int64_t columns = std::min(panel_columns, size() - column);
    with_.pack({right + block.all.first * size() + column, block.all.stride * size(), columns,
                block.all.rows, panel_columns, true},
               panels);
    std::int64_t begin = 0, end = 0;  // the strips that have weights of a tile's keys
    for (std::int64_t key = 0; key < block.all.keys.count(); key += with_.rows) {
      const std::int64_t keys = std::min(with_.rows, block.all.keys.count() - key);
      while (begin < count && block.ends[static_cast<std::size_t>(begin)] <= first + key) ++begin;
      while (end < count && block.strips[static_cast<std::size_t>(end)].keys.first <= first + key)
        ++end;
      const std::int64_t from = begin * strip_steps,
                         depth = std::min(steps, end * strip_steps) - from;
      if (depth <= 0) continue;
      with_.product({keys, columns, depth, keys, tiles + key * steps + from * keys,
                     panels + from * panel_columns, to + key * width() + column, width(), true});
    }
  }
}

void PackedAttention::backward_strip(const Part& part, const Block& block, std::size_t i,
                                     const Memory& memory, const AttentionUpstream& up,
                                     float* dq) const {
  const Strip& strip = block.strips[i];
  const std::int64_t offset = strip.keys.first - block.all.keys.first, pitch = memory.pitch;
  float *p = memory.scores + offset, *ds = memory.dscores + offset;
  against_keys(part, strip, q_, memory.keys, p, memory);
  against_keys(part, strip, up.dout, memory.values, ds, memory);
  for (const float* of : {q_, up.dout, up.out}) fetch(strip, of);
  for (std::int64_t row = 0; row < strip.rows; ++row) {
    const std::int64_t pair = strip.pair(row), at = pair * size();
    const float dot = kernels_.dot(up.out + at, up.dout + at, size());
    rows_.slopes(pair, {strip.keys.first, block.ends[i]}, dot, up.lse[pair], p + row * pitch,
                 ds + row * pitch);
  }
  over_keys(part, strip, ds, memory.keys_by_column, memory, dq);
  pack_weights(block, i, memory.scores, pitch, memory.p_tiles);
  pack_weights(block, i, memory.dscores, pitch, memory.ds_tiles);
}

template <class Visit>
void PackedAttention::for_each_block(const Part& part, Visit visit) const {
  const std::int64_t most = block_rows(part), blocks = (part.rows + most - 1) / most;
  for (std::int64_t i = 0; i < share() * blocks; ++i) {
    const std::int64_t head = in_pairs() ? i / blocks : i % share(),
                       row = (in_pairs() ? i % blocks : i / share()) * most;
    visit(head, row, std::min(most, part.rows - row));
  }
}

void PackedAttention::backward_part(const Part& part, int worker, const AttentionUpstream& up,
                                    const AttentionGradients& to) const {
  const Memory memory = memory_for(part, worker, true);
  for (float* all : {to.dk, to.dv}) {
    float* row = all + std::int64_t{part.row} * width() + part.kv_head * size();
    for (std::int64_t i = 0; i < part.rows; ++i, row += width()) std::fill_n(row, size(), 0.0F);
  }
  pack_by_key(part, k_, memory.staged, memory.keys);
  pack_by_key(part, v_, memory.staged, memory.values);
  pack_by_column(part, k_, memory.staged, memory.keys_by_column);
  for_each_block(part, [&](std::int64_t head, std::int64_t row, std::int64_t rows) {
    const Block block = block_of(part, head, part.row + row, rows);
    for (std::size_t i = 0; i < block.strips.size(); ++i)
      backward_strip(part, block, i, memory, up, to.dq);
    over_rows(part, block, memory.p_tiles, up.dout, memory.right, to.dv);
    over_rows(part, block, memory.ds_tiles, q_, memory.right, to.dk);
  });
}

void PackedAttention::backward(const AttentionUpstream& up, const AttentionGradients& to) const {
  // dk and dv of one sequence and head are one chain over its heads and rows, so one thread takes
  // them all, in order.
  const std::vector<Part> all = parts(std::max<std::int64_t>(1, layout_.rows()), 1);
  device_.pool_.run(static_cast<std::int64_t>(all.size()), [&](std::int64_t i, int worker) {
    backward_part(all[static_cast<std::size_t>(i)], worker, up, to);
  });
}

}  // namespace troupe::engine::ops
