#include "engine/ops/cpu/attention/tiled_attention.h"

namespace troupe::engine::ops::cpu {
namespace {

std::int64_t round_up(std::int64_t count, std::int64_t to) {
  return (count + to - 1) / to * to;
}

/// Leading dimension of scores: an odd number of cache lines, so that rows map to different cache
/// sets.
std::int64_t ld_for(std::int64_t keys) {
  return padded_columns(keys) + 16;
}

}  // namespace

TiledAttention::TiledAttention(const Context& context, const AttentionInputs& in)
    : context_(context),
      kernels_(context.kernels),
      for_scores_(in.precision == Precision::bf16 ? context.kernels.gemm_bf16
                                                  : context.kernels.gemm_f32_dot),
      for_values_(in.precision == Precision::bf16 ? context.kernels.gemm_bf16
                                                  : context.kernels.gemm_f32),
      layout_(in.layout),
      shape_(in.shape),
      seen_(in.kv, in.layout, in.shape.window),
      softmax_(kernels_, seen_, in),
      runs_(in.kv, in.layout, in.shape.window),
      q_(data(in.q)),
      k_(data(in.kv.k)),
      v_(data(in.kv.v)) {
}

std::int64_t TiledAttention::tile_rows() const {
  return round_up(10, for_scores_.mr % for_values_.k_pack == 0
                          ? for_scores_.mr
                          : for_scores_.mr * for_values_.k_pack);
}

TiledAttention::WorkItem TiledAttention::work_item(std::size_t sequence, int kv_head, int kv_heads,
                                                   std::int64_t row, std::int64_t rows) const {
  const KeyRange seen = seen_.of(row, row + rows);
  const std::int64_t unseen = seen.first % for_values_.k_pack;
  return {.sequence = sequence,
          .kv_head = kv_head,
          .kv_heads = kv_heads,
          .row = row,
          .rows = rows,
          .keys = {seen.first - unseen, seen.end},
          .unseen = unseen};
}

std::vector<TiledAttention::WorkItem> TiledAttention::work_items(std::int64_t max_rows,
                                                                 int max_kv_heads) const {
  std::vector<WorkItem> all;
  for (std::size_t n = 0; n + 1 < layout_.offsets.size(); ++n) {
    const std::int64_t begin = layout_.offsets[n], end = layout_.offsets[n + 1];
    const int kv_heads_per_item = end - begin == 1 ? max_kv_heads : 1;
    for (int g = 0; g < shape_.kv_heads; g += kv_heads_per_item) {
      for (std::int64_t row = begin; row < end; row += max_rows)
        all.push_back(work_item(n, g, std::min(kv_heads_per_item, shape_.kv_heads - g), row,
                                std::min(max_rows, end - row)));
    }
  }
  const int threads = context_.pool.threads();
  for (int thread = 0; thread < threads && std::ssize(all) < std::int64_t{16} * threads; ++thread) {
    const auto [begin, end] = context_.pool.slice(std::ssize(all), thread);
    std::stable_sort(all.begin() + begin, all.begin() + end,
                     [](const WorkItem& a, const WorkItem& b) {
                       return a.rows * a.keys.count() > b.rows * b.keys.count();
                     });
  }
  return all;
}

std::vector<TiledAttention::WorkItem> TiledAttention::forward_items() const {
  const int threads = context_.pool.threads();
  const std::int64_t enough = threads == 1 ? 1 : std::int64_t{3} * threads,
                     min_rows = 4 * tile_rows();  // so that packing costs little in comparison
  int kv_heads_per_item = shape_.kv_heads;
  while (kv_heads_per_item > 1 &&
         layout_.sequences() * (shape_.kv_heads / kv_heads_per_item) < enough)
    kv_heads_per_item = (kv_heads_per_item + 1) / 2;
  std::int64_t max_rows = std::max(round_up(layout_.rows(), tile_rows()), min_rows);
  std::vector<WorkItem> all = work_items(max_rows, kv_heads_per_item);
  while (static_cast<std::int64_t>(all.size()) < enough && max_rows > min_rows) {
    max_rows = std::max(round_up(max_rows / 2, tile_rows()), min_rows);
    all = work_items(max_rows, kv_heads_per_item);
  }
  return all;
}

TiledAttention::QTile TiledAttention::tile_of(const WorkItem& item, std::int64_t head,
                                              std::int64_t row, std::int64_t rows) const {
  KeyRange keys = seen_.of(row, row + rows).within(item.keys);
  keys.first -= (keys.first - item.keys.first) % panel_nr;
  return {row * shape_.heads + item.kv_head * heads_per_kv() + head, rows, shape_.heads, keys};
}

std::int64_t TiledAttention::max_keys(const WorkItem& item, std::int64_t rows) const {
  std::int64_t largest = 0;
  for (std::int64_t row = item.row; row < item.row + item.rows; row += rows) {
    largest = std::max(largest, seen_.of(row, std::min(row + rows, item.row + item.rows)).count());
  }
  return std::min(item.padded_keys(), padded_columns(largest + panel_nr));
}

TiledAttention::Buffers TiledAttention::buffers_for(const WorkItem& item, int worker,
                                                    bool backward) const {
  const bool one = item.rows == 1 && !backward;
  const std::int64_t held = one ? panel_nr : item.padded_keys(),
                     depth = for_scores_.k_groups(size()), wide = padded_columns(size());
  const std::int64_t rows = one ? heads_per_kv() * item.kv_heads : tile_rows();
  const std::int64_t keys = max_keys(item, backward ? block_rows(item) : tile_rows()),
                     ld = ld_for(keys);
  const std::int64_t block = backward ? for_values_.k_groups(block_rows(item)) : 0;
  const std::int64_t by_key = held * depth, by_column = for_values_.k_groups(held) * wide;
  const std::int64_t sizes[] = {by_key,
                                backward ? by_key : by_column,
                                panel_nr * size() * item.kv_heads,
                                rows * std::max(depth, for_values_.k_groups(keys)),
                                rows * (ld + 1),
                                backward ? by_column : 0,
                                backward ? rows * ld : 0,
                                block * wide,
                                block * keys,
                                block * keys};
  std::int64_t total = 0;
  for (const std::int64_t count : sizes) total += round_up(count, 16);
  float* at = context_.workspace.tiles(worker).need(total);
  float* places[std::size(sizes)];
  for (std::size_t i = 0; i < std::size(sizes); ++i) {
    places[i] = at;
    at += round_up(sizes[i], 16);
  }
  return {.keys = places[0],
          .values = places[1],
          .staged = places[2],
          .tiles = places[3],
          .scores = places[4],
          .keys_by_column = places[5],
          .dscores = places[6],
          .right = places[7],
          .p_tiles = places[8],
          .ds_tiles = places[9],
          .ld = ld};
}

void TiledAttention::pack_by_key(const WorkItem& item, const float* from, float* staged,
                                 float* to) const {
  for_each_kv_block(item, from, panel_nr, staged, [&](const KvBlock& kv) {
    prefetch(kv, 0);
    pack_keys(kv.rows, kv.ld, kv.keys,
              to + (kv.key - item.keys.first) * for_scores_.k_groups(size()));
  });
}

void TiledAttention::pack_keys(const float* rows, std::int64_t ld, std::int64_t keys,
                               float* to) const {
  const std::int64_t columns = for_scores_.nr, steps = for_scores_.k_groups(size());
  for (std::int64_t key = 0; key < keys; key += columns)
    for_scores_.pack({rows + key * ld, ld, std::min(columns, keys - key), size(), columns, false},
                     to + key * steps);
}

void TiledAttention::pack_by_column(const WorkItem& item, const float* from, float* staged,
                                    float* to) const {
  const std::int64_t steps = for_values_.k_groups(item.keys.count());
  for_each_kv_block(item, from, panel_nr, staged, [&](const KvBlock& kv) {
    prefetch(kv, 0);
    for (std::int64_t column = 0; column < size(); column += panel_nr) {
      for_values_.pack(
          {kv.rows + column, kv.ld, std::min(panel_nr, size() - column), kv.keys, panel_nr, true},
          to + column * steps + (kv.key - item.keys.first) / for_values_.k_pack * panel_nr);
    }
  });
}

void TiledAttention::pack_rows(const GemmKernel& kernel, const PackArgs& rows, float* to) {
  const std::int64_t height = kernel.mr_for(rows.count);
  for (std::int64_t i = 0; i < rows.count; i += height) {
    const std::int64_t count = std::min(height, rows.count - i);
    kernel.pack({rows.from + i * rows.ld, rows.ld, count, rows.k, count, false},
                to + i * kernel.k_groups(rows.k));
  }
}

void TiledAttention::scores_of_tile(const WorkItem& item, const QTile& tile, const float* left,
                                    const float* packed, float* scores,
                                    const Buffers& buffers) const {
  const std::int64_t steps = for_scores_.k_groups(size());
  pack_rows(for_scores_,
            {left + tile.first * size(), tile.stride * size(), tile.rows, size(), 0, false},
            buffers.tiles);
  for_scores_.gemm({tile.rows, tile.keys.count(), steps, for_scores_.mr_for(tile.rows),
                    buffers.tiles, packed + (tile.keys.first - item.keys.first) * steps, scores,
                    buffers.ld, false});
}

void TiledAttention::values_of_tile(const WorkItem& item, const QTile& tile, const float* weights,
                                    const float* packed, const Buffers& buffers, float* to,
                                    bool accumulate) const {
  const std::int64_t before = for_values_.k_groups(tile.keys.first - item.keys.first),
                     all = for_values_.k_groups(item.keys.count());
  pack_rows(for_values_, {weights, buffers.ld, tile.rows, tile.keys.count(), 0, false},
            buffers.tiles);
  for (std::int64_t column = 0; column < size(); column += panel_nr) {
    for_values_.gemm({tile.rows, std::min(panel_nr, size() - column),
                      for_values_.k_groups(tile.keys.count()), for_values_.mr_for(tile.rows),
                      buffers.tiles, packed + column * all + before * panel_nr,
                      to + tile.first * size() + column, tile.stride * size(), accumulate});
  }
}

void TiledAttention::softmax(const QTile& tile, float* scores, std::int64_t ld, float* inverse,
                             float* lse) const {
  for (std::int64_t i = 0; i < tile.rows; ++i) {
    const SoftmaxSums sums = softmax_.forward(tile.pair(i), tile.keys, scores + i * ld);
    inverse[i] = static_cast<float>(1 / sums.sum);
    if (lse != nullptr) lse[tile.pair(i)] = lse_of(sums);
  }
}

void TiledAttention::forward_item(const WorkItem& item, int worker, float* out, float* lse) const {
  if (item.rows == 1) return forward_row(item, worker, out, lse);
  const Buffers buffers = buffers_for(item, worker, false);
  float* inverse = buffers.scores + tile_rows() * buffers.ld;
  pack_by_key(item, k_, buffers.staged, buffers.keys);
  pack_by_column(item, v_, buffers.staged, buffers.values);
  for (std::int64_t head = 0; head < heads_per_kv(); ++head) {
    for (std::int64_t row = 0; row < item.rows; row += tile_rows()) {
      const QTile tile =
          tile_of(item, head, item.row + row, std::min(tile_rows(), item.rows - row));
      scores_of_tile(item, tile, q_, buffers.keys, buffers.scores, buffers);
      prefetch(tile, q_);
      softmax(tile, buffers.scores, buffers.ld, inverse, lse);
      values_of_tile(item, tile, buffers.scores, buffers.values, buffers, out, false);
      for (std::int64_t i = 0; i < tile.rows; ++i)
        kernels_.scale(out + tile.pair(i) * size(), inverse[i], size());
    }
  }
}

void TiledAttention::scores_of_row(const WorkItem& item, const Buffers& buffers,
                                   float* packed) const {
  const std::int64_t steps = for_scores_.k_groups(size()),
                     first = item.row * shape_.heads + item.kv_head * heads_per_kv();
  for (int g = 0; g < item.kv_heads; ++g)
    pack_rows(
        for_scores_,
        {q_ + (first + g * heads_per_kv()) * size(), size(), heads_per_kv(), size(), 0, false},
        buffers.tiles + g * heads_per_kv() * steps);
  for_each_kv_block(item, k_, for_values_.k_pack, buffers.staged, [&](const KvBlock& kv) {
    for (int g = 0; g < item.kv_heads; ++g) {
      const float* rows = kv.rows + g * size();
      prefetch(kv, g);
      pack_keys(rows, kv.ld, kv.keys, packed);
      for_scores_.gemm({heads_per_kv(), kv.keys, steps, for_scores_.mr_for(heads_per_kv()),
                        buffers.tiles + g * heads_per_kv() * steps, packed,
                        buffers.scores + g * heads_per_kv() * buffers.ld + kv.key - item.keys.first,
                        buffers.ld, false});
    }
  });
}

void TiledAttention::values_of_row(const WorkItem& item, const Buffers& buffers, float* packed,
                                   float* out) const {
  const std::int64_t first = item.row * shape_.heads + item.kv_head * heads_per_kv();
  for_each_kv_block(item, v_, for_values_.k_pack, buffers.staged, [&](const KvBlock& kv) {
    const std::int64_t place = kv.key - item.keys.first, steps = for_values_.k_groups(kv.keys);
    for (int g = 0; g < item.kv_heads; ++g) {
      const float* rows = kv.rows + g * size();
      prefetch(kv, g);
      for (std::int64_t column = 0; column < size(); column += panel_nr) {
        for_values_.pack(
            {rows + column, kv.ld, std::min(panel_nr, size() - column), kv.keys, panel_nr, true},
            packed + column * steps);
      }
      pack_rows(for_values_,
                {buffers.scores + g * heads_per_kv() * buffers.ld + place, buffers.ld,
                 heads_per_kv(), kv.keys, 0, false},
                buffers.tiles);
      for_values_.gemm({heads_per_kv(), size(), steps, for_values_.mr_for(heads_per_kv()),
                        buffers.tiles, packed, out + (first + g * heads_per_kv()) * size(), size(),
                        place > 0});
    }
  });
}

void TiledAttention::forward_row(const WorkItem& item, int worker, float* out, float* lse) const {
  const Buffers buffers = buffers_for(item, worker, false);
  const QTile heads{item.row * shape_.heads + item.kv_head * heads_per_kv(),
                    heads_per_kv() * item.kv_heads, 1, item.keys};
  float* inverse = buffers.scores + heads.rows * buffers.ld;
  scores_of_row(item, buffers, buffers.keys);
  softmax(heads, buffers.scores, buffers.ld, inverse, lse);
  values_of_row(item, buffers, buffers.values, out);
  for (std::int64_t i = 0; i < heads.rows; ++i)
    kernels_.scale(out + heads.pair(i) * size(), inverse[i], size());
}

void TiledAttention::forward(float* out, float* lse) const {
  const std::vector<WorkItem> all = forward_items();
  std::int64_t work = 0;
  for (const WorkItem& item : all)
    work += item.rows * item.keys.count() * size() * 2 * heads_per_kv() * item.kv_heads;
  context_.parallel_for(static_cast<std::int64_t>(all.size()), work,
                        [&](std::int64_t i, int worker) {
                          forward_item(all[static_cast<std::size_t>(i)], worker, out, lse);
                        });
}

/// Many rows, because each element of dk and dv is loaded and stored once per block, but few enough
/// that their weights stay in the L2 cache. In f32 it is part of the order in which heads are
/// added.
std::int64_t TiledAttention::block_rows(const WorkItem& item) const {
  constexpr std::int64_t min_tiles = 4, max_tiles = 8, max_weights = 131072;
  const std::int64_t all = item.keys.count();
  if (!is_bf16())
    return std::clamp<std::int64_t>(
        65536 / (shape_.window == 0 ? all : std::min<std::int64_t>(all, shape_.window)), 1, 48);
  const std::int64_t keys =
      shape_.window == 0 ? all : std::min(all, shape_.window + max_tiles * tile_rows());
  return std::clamp(max_weights / keys / tile_rows(), min_tiles, max_tiles) * tile_rows();
}

TiledAttention::QBlock TiledAttention::block_of(const WorkItem& item, std::int64_t head,
                                                std::int64_t row, std::int64_t rows) const {
  QBlock block{tile_of(item, head, row, rows), {}, {}};
  const std::int64_t first = block.all.keys.first, mr = for_values_.mr;
  for (std::int64_t i = 0; i < rows; i += tile_rows()) {
    QTile tile = tile_of(item, head, row + i, std::min(tile_rows(), rows - i));
    // Weights of whole tiles of keys, from a whole panel on.
    tile.keys.first -= (tile.keys.first - first) % mr;
    tile.keys.first -= (tile.keys.first - first) % panel_nr;
    // Ranges of keys advance from tile to tile, so that the tiles that see a key are consecutive.
    if (i > 0) tile.keys.end = std::max(tile.keys.end, block.tiles.back().keys.end);
    block.tiles.push_back(tile);
    block.ends.push_back(
        std::min(block.all.keys.end, first + (tile.keys.end - first + mr - 1) / mr * mr));
  }
  for (std::size_t i = block.tiles.size() - 1; i > 0; --i)
    block.tiles[i - 1].keys.first =
        std::min(block.tiles[i - 1].keys.first, block.tiles[i].keys.first);
  return block;
}

void TiledAttention::pack_weights(const QBlock& block, std::size_t i, const float* weights,
                                  std::int64_t ld, float* tiles) const {
  const QTile& tile = block.tiles[i];
  const std::int64_t first = block.all.keys.first, steps = for_values_.k_groups(block.all.rows),
                     before = for_values_.k_groups(tile_rows()) * static_cast<std::int64_t>(i);
  for (std::int64_t key =
           (tile.keys.first - first + for_values_.mr - 1) / for_values_.mr * for_values_.mr;
       key < block.ends[i] - first; key += for_values_.mr) {
    const std::int64_t keys = std::min(for_values_.mr, block.all.keys.count() - key);
    for_values_.pack({weights + key, ld, keys, tile.rows, keys, true},
                     tiles + key * steps + before * keys);
  }
}

void TiledAttention::add_to_dkv(const WorkItem& item, const QBlock& block, const float* tiles,
                                const float* right, float* panels, float* to) const {
  const std::int64_t first = block.all.keys.first, steps = for_values_.k_groups(block.all.rows),
                     tile_groups = for_values_.k_groups(tile_rows());
  const auto count = static_cast<std::int64_t>(block.tiles.size());
  const KeyBlock keys_of = seen_.block(item.sequence);
  to += (keys_of.row + first - keys_of.first) * width() + item.kv_head * size();
  for (std::int64_t column = 0; column < size(); column += panel_nr) {
    const std::int64_t columns = std::min(panel_nr, size() - column);
    for_values_.pack({right + block.all.first * size() + column, block.all.stride * size(), columns,
                      block.all.rows, panel_nr, true},
                     panels);
    std::int64_t begin = 0, end = 0;  // the tiles that have weights of the keys
    for (std::int64_t key = 0; key < block.all.keys.count(); key += for_values_.mr) {
      const std::int64_t keys = std::min(for_values_.mr, block.all.keys.count() - key);
      while (begin < count && block.ends[static_cast<std::size_t>(begin)] <= first + key) ++begin;
      while (end < count && block.tiles[static_cast<std::size_t>(end)].keys.first <= first + key)
        ++end;
      const std::int64_t from = begin * tile_groups,
                         depth = std::min(steps, end * tile_groups) - from;
      if (depth <= 0) continue;
      for_values_.gemm({keys, columns, depth, keys, tiles + key * steps + from * keys,
                        panels + from * panel_nr, to + key * width() + column, width(), true});
    }
  }
}

void TiledAttention::backward_tile(const WorkItem& item, const QBlock& block, std::size_t i,
                                   const Buffers& buffers, const Gradients& g) const {
  const QTile& tile = block.tiles[i];
  const std::int64_t offset = tile.keys.first - block.all.keys.first, ld = buffers.ld;
  float *p = buffers.scores + offset, *ds = buffers.dscores + offset;
  scores_of_tile(item, tile, q_, buffers.keys, p, buffers);
  scores_of_tile(item, tile, g.dout, buffers.values, ds, buffers);
  for (const float* of : {q_, g.dout, g.out}) prefetch(tile, of);
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    const std::int64_t pair = tile.pair(row), at = pair * size();
    const float dot = kernels_.dot(g.out + at, g.dout + at, size());
    softmax_.backward(pair, {tile.keys.first, block.ends[i]}, dot, g.lse[pair], p + row * ld,
                      ds + row * ld);
  }
  values_of_tile(item, tile, ds, buffers.keys_by_column, buffers, g.dq, item.some_keys);
  pack_weights(block, i, buffers.scores, ld, buffers.p_tiles);
  pack_weights(block, i, buffers.dscores, ld, buffers.ds_tiles);
}

template <class Visit>
void TiledAttention::for_each_block(const WorkItem& item, Visit visit) const {
  const std::int64_t max_rows = block_rows(item), blocks = (item.rows + max_rows - 1) / max_rows;
  for (std::int64_t i = 0; i < heads_per_kv() * blocks; ++i) {
    const std::int64_t head = is_bf16() ? i / blocks : i % heads_per_kv(),
                       row = (is_bf16() ? i % blocks : i / heads_per_kv()) * max_rows;
    visit(head, row, std::min(max_rows, item.rows - row));
    progress::advance();  // an item of the backward pass may be a whole sequence
  }
}

TiledAttention::WorkItem TiledAttention::part_of(const WorkItem& item, KeyRange keys) const {
  std::int64_t begin = item.row, end = item.row + item.rows;
  while (begin < end && seen_.at(begin).end <= keys.first) ++begin;
  while (begin < end && seen_.at(end - 1).first >= keys.end) --end;
  begin -= (begin - item.row) % for_values_.k_pack;  // such a row has no weights
  WorkItem part = work_item(item.sequence, item.kv_head, item.kv_heads, begin, end - begin);
  part.keys = part.keys.within(keys);
  part.unseen = part.keys.first % for_values_.k_pack;
  part.keys.first -= part.unseen;
  part.some_keys = true;
  return part;
}

void TiledAttention::clear_gradients(const WorkItem& item, const Gradients& g) const {
  const KeyBlock given = seen_.block(item.sequence);
  for (float* all : {g.dk, g.dv}) {
    float* row = all + given.row * width() + item.kv_head * size();
    for (auto key = given.first; key < given.end; ++key, row += width())
      std::fill_n(row, size(), 0.0F);
  }
}

// Keys that stay in the L2 cache, with what is computed for them, are gone through by all rows
// before the next ones.
void TiledAttention::backward_item(const WorkItem& item, int worker, const Gradients& g) const {
  clear_gradients(item, g);
  if (item.keys.count() <= max_backward_keys) return backward_keys(item, worker, g);
  const std::int64_t columns = heads_per_kv() * size();
  for (std::int64_t row = item.row; row < item.row + item.rows; ++row)
    std::fill_n(g.dq + row * shape_.heads * size() + item.kv_head * columns, columns, 0.0F);
  for (std::int64_t key = item.keys.first; key < item.keys.end; key += max_backward_keys) {
    const WorkItem part = part_of(item, {key, std::min(key + max_backward_keys, item.keys.end)});
    if (part.rows > 0) backward_keys(part, worker, g);
  }
}

void TiledAttention::backward_keys(const WorkItem& item, int worker, const Gradients& g) const {
  const Buffers buffers = buffers_for(item, worker, true);
  pack_by_key(item, k_, buffers.staged, buffers.keys);
  pack_by_key(item, v_, buffers.staged, buffers.values);
  pack_by_column(item, k_, buffers.staged, buffers.keys_by_column);
  for_each_block(item, [&](std::int64_t head, std::int64_t row, std::int64_t rows) {
    const QBlock block = block_of(item, head, item.row + row, rows);
    for (std::size_t i = 0; i < block.tiles.size(); ++i) backward_tile(item, block, i, buffers, g);
    add_to_dkv(item, block, buffers.p_tiles, g.dout, buffers.right, g.dv);
    add_to_dkv(item, block, buffers.ds_tiles, q_, buffers.right, g.dk);
  });
}

void TiledAttention::backward(const AttentionBackward& with) const {
  const Gradients g{data(with.out),        data(with.lse),        data(with.dout),
                    mutable_data(with.dq), mutable_data(with.dk), mutable_data(with.dv)};
  // dk and dv of one sequence and key/value head are one chain over heads and rows, so one thread
  // computes them all, in order.
  const std::vector<WorkItem> all = work_items(std::max<std::int64_t>(1, layout_.rows()), 1);
  context_.pool.run(static_cast<std::int64_t>(all.size()), [&](std::int64_t i, int worker) {
    backward_item(all[static_cast<std::size_t>(i)], worker, g);
  });
}

}  // namespace troupe::engine::ops::cpu
