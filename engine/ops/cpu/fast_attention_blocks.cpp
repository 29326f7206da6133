// How attention cuts its rows into blocks, and packs what a block needs.
#include <algorithm>

#include "engine/ops/cpu/fast_attention.h"

namespace troupe::engine::ops {
namespace {

/// Those that a row at this position sees.
Keys keys_at(std::int64_t position, int window) {
  return {window == 0 ? 0 : std::max<std::int64_t>(0, position + 1 - window), position + 1};
}

}  // namespace

AttentionPass::AttentionPass(FastDevice& device, const Tensor& q, const KeyValues& kv, const Layout& layout, const AttentionShape& shape)
    : device_(device),
      kernels_(device.kernels_),
      with_(device.kernels_.singles),
      layout_(layout),
      shape_(shape),
      q_(in(q)),
      k_(in(kv.k)),
      v_(in(kv.v)) {
  for (std::size_t n = 0; n + 1 < layout.offsets.size(); ++n) {
    first_run_.push_back(runs_.size());
    if (layout.offsets[n] < layout.offsets[n + 1]) append_runs(kv, n, keys_seen(layout.offsets[n], layout.offsets[n + 1]));
  }
  first_run_.push_back(runs_.size());
}

/// The longest runs of keys that lie together, from the page of the first one on.
void AttentionPass::append_runs(const KeyValues& kv, std::size_t sequence, Keys keys) {
  if (kv.page_size == 0) return runs_.push_back({0, keys.end, layout_.offsets[sequence]});
  const auto& pages = kv.pages[sequence];
  const std::int64_t size = kv.page_size;
  for (std::int64_t key = keys.first / size * size; key < keys.end; key += runs_.back().keys) {
    const auto first = static_cast<std::size_t>(key / size);
    std::size_t last = first + 1;
    while (static_cast<std::int64_t>(last) * size < keys.end && pages[last] == pages[last - 1] + 1) ++last;
    runs_.push_back({key, std::min(keys.end - key, static_cast<std::int64_t>(last - first) * size), pages[first] * size});
  }
}

Keys AttentionPass::keys_seen(std::int64_t begin, std::int64_t end) const {
  const auto [least, most] = std::minmax_element(layout_.positions.begin() + begin, layout_.positions.begin() + end);
  return {keys_at(*least, shape_.window).first, std::int64_t{*most} + 1};
}

Keys AttentionPass::keys_of(std::int64_t pair) const {
  return keys_at(layout_.positions[static_cast<std::size_t>(pair / shape_.heads)], shape_.window);
}

std::vector<AttentionPass::Block> AttentionPass::blocks(std::int64_t most) const {
  std::vector<Block> all;
  for (std::size_t n = 0; n + 1 < layout_.offsets.size(); ++n) {
    const std::int64_t begin = layout_.offsets[n], end = layout_.offsets[n + 1], parts = (end - begin + most - 1) / most;
    if (begin == end) continue;
    const std::int64_t even = ((end - begin + parts - 1) / parts + least_group_rows - 1) / least_group_rows * least_group_rows;
    for (std::int64_t row = begin; row < end; row += even) {
      const std::int64_t rows = std::min(even, end - row);
      for (int g = 0; g < shape_.kv_heads; ++g) all.push_back({n, g, row, rows, keys_seen(row, row + rows)});
    }
  }
  return all;
}

std::vector<AttentionPass::Block> AttentionPass::blocks_for_threads() const {
  std::int64_t most = 256;  // rows against which packing weighs little
  std::vector<Block> all = blocks(most);
  const std::int64_t threads = device_.pool_.threads(), enough = threads == 1 ? 1 : 3 * threads;
  while (static_cast<std::int64_t>(all.size()) < enough && most > most_group_rows) {
    most /= 2;
    all = blocks(most);
  }
  return all;
}

void AttentionPass::fetch(const float* from, std::int64_t apart, std::int64_t rows) const {
  constexpr std::int64_t line = 16;
  for (std::int64_t row = 0; row < rows; ++row, from += apart) {
    for (std::int64_t column = 0; column < shape_.head_size; column += line) __builtin_prefetch(from + column);
  }
}

AttentionPass::Run AttentionPass::piece_at(const Block& block, Place& place) const {
  for (; place.run < first_run_[block.sequence + 1] && place.key < block.keys.end; ++place.run) {
    const Run& run = runs_[place.run];
    const std::int64_t key = place.key, end = std::min(run.key + run.keys, block.keys.end);
    if (key >= end) continue;
    const std::int64_t keys = std::min(end - key, panel_columns - (key - block.keys.first) % panel_columns);
    place.key += keys;
    return {key, keys, run.row + key - run.key};
  }
  return {};
}

template <class Visit>
void AttentionPass::for_each_piece(const Block& block, const float* from, Visit visit) const {
  constexpr int pieces_ahead = 4;
  from += block.kv_head * shape_.head_size;
  Place at{first_run_[block.sequence], block.keys.first}, ahead = at;
  const auto fetch_one = [&] {
    const Run piece = piece_at(block, ahead);
    fetch(from + piece.row * width(), width(), piece.keys);
  };
  for (int i = 0; i < pieces_ahead; ++i) fetch_one();
  for (Run piece = piece_at(block, at); piece.keys > 0; piece = piece_at(block, at)) {
    const float* rows = from + piece.row * width();
    fetch_one();
    if (block.kv_head + 1 < shape_.kv_heads) fetch(rows + shape_.head_size, width(), piece.keys);  // most likely our next block
    visit(piece, rows);
  }
}

AttentionPass::Memory AttentionPass::memory_for(const Block& block, int worker, bool backward) const {
  const std::int64_t size = shape_.head_size, keys = block.keys.count(),
                     rows = block.rows == 1 ? share() : std::min(block.rows, most_group_rows);
  const std::int64_t held = block.rows == 1 && !backward ? panel_columns : keys;
  const std::int64_t by_key = panels_width(held) * size, by_column = held * panels_width(size);
  const std::int64_t pieces[] = {by_key,
                                 backward ? by_key : by_column,
                                 rows * size,
                                 rows * block.pitch(),
                                 rows,
                                 backward ? by_column : 0,
                                 backward ? rows * block.pitch() : 0,
                                 backward ? rows * panels_width(size) : 0};
  constexpr std::int64_t line = 16;
  std::int64_t total = 0;
  for (const std::int64_t piece : pieces) total += (piece + line - 1) / line * line;
  float* at = device_.block_scratch(worker).need(total);
  float* places[std::size(pieces)];
  for (std::size_t i = 0; i < std::size(pieces); ++i) {
    places[i] = at;
    at += (pieces[i] + line - 1) / line * line;
  }
  return {places[0], places[1], places[2], places[3], places[4], places[5], places[6], places[7]};
}

void AttentionPass::pack_by_key(const Block& block, const float* from, float* to) const {
  const std::int64_t size = shape_.head_size;
  for_each_piece(block, from, [&](const Run& piece, const float* rows) {
    const std::int64_t place = piece.key - block.keys.first, column = place % panel_columns;
    with_.pack({rows, width(), piece.keys, size, piece.keys, false, panel_columns}, to + (place - column) * size + column);
  });
}

void AttentionPass::pack_columns(const float* rows, std::int64_t keys, std::int64_t panel_steps, float* to) const {
  for (std::int64_t column = 0; column < shape_.head_size; column += panel_columns) {
    with_.pack({rows + column, width(), std::min(panel_columns, shape_.head_size - column), keys, panel_columns, true},
               to + column * panel_steps);
  }
}

void AttentionPass::pack_by_column(const Block& block, const float* from, float* to) const {
  for_each_piece(block, from, [&](const Run& piece, const float* rows) {
    pack_columns(rows, piece.keys, block.keys.count(), to + (piece.key - block.keys.first) * panel_columns);
  });
}

void AttentionPass::pack_rows(const Group& group, const float* rows, const Memory& memory) const {
  const std::int64_t size = shape_.head_size, height = with_.tile(group.rows);
  for (std::int64_t i = 0; i < group.rows; i += height) {
    const std::int64_t count = std::min(height, group.rows - i);
    with_.pack({rows + group.row_of(i) * size, group.stride * size, count, size, count, false}, memory.tiles + i * size);
  }
}

void AttentionPass::scores_of_one_row(const Block& block, const Group& heads, const Memory& memory) const {
  const std::int64_t size = shape_.head_size;
  pack_rows(heads, q_, memory);
  for_each_piece(block, k_, [&](const Run& piece, const float* rows) {
    const std::int64_t place = piece.key - block.keys.first, column = place % panel_columns, filled = column + piece.keys;
    with_.pack({rows, width(), piece.keys, size, piece.keys, false, panel_columns}, memory.keys + column);
    if (filled < panel_columns && piece.key + piece.keys < block.keys.end) return;
    with_.product({heads.rows, filled, size, with_.tile(heads.rows), memory.tiles, memory.keys, memory.scores + place - column,
                   block.pitch(), false});
  });
}

void AttentionPass::values_of_one_row(const Block& block, const Group& heads, const Memory& memory, float* out) const {
  const std::int64_t size = shape_.head_size;
  for_each_piece(block, v_, [&](const Run& piece, const float* rows) {
    const std::int64_t place = piece.key - block.keys.first;
    pack_columns(rows, piece.keys, piece.keys, memory.values);
    with_.product({heads.rows, size, piece.keys, with_.tile(heads.rows), memory.scores + place, memory.values, out + heads.first * size,
                   heads.stride * size, place > 0, piece.keys, block.pitch(), 1});
  });
}

void AttentionPass::against_keys(const Block& block, const Group& group, const float* left, const float* packed, const Memory& memory,
                                 float* scores) const {
  const std::int64_t size = shape_.head_size, height = with_.tile(group.rows);
  pack_rows(group, left, memory);
  with_.product({group.rows, group.keys.count(), size, height, memory.tiles, packed + (group.keys.first - block.keys.first) * size, scores,
                 block.pitch(), false});
}

void AttentionPass::over_keys(const Block& block, const Group& group, const float* weights, const float* packed, float* to) const {
  const std::int64_t size = shape_.head_size, height = with_.tile(group.rows), keys = group.keys.count();
  with_.product({group.rows, size, keys, height, weights, packed + (group.keys.first - block.keys.first) * panel_columns,
                 to + group.first * size, group.stride * size, false, block.keys.count(), block.pitch(), 1});
}

void AttentionPass::over_rows(const Block& block, const Group& group, const float* weights, const float* right, const Memory& memory,
                              float* to) const {
  const std::int64_t size = shape_.head_size, keys = group.keys.count(), height = with_.tile(keys);
  for (std::int64_t column = 0; column < size; column += panel_columns) {
    with_.pack(
        {right + group.first * size + column, group.stride * size, std::min(panel_columns, size - column), group.rows, panel_columns, true},
        memory.rows + column * group.rows);
  }
  const std::int64_t first = layout_.offsets[block.sequence] + group.keys.first;
  with_.product({keys, size, group.rows, height, weights, memory.rows, to + first * width() + block.kv_head * size, width(), true,
                 group.rows, 1, block.pitch()});
}

}  // namespace troupe::engine::ops
