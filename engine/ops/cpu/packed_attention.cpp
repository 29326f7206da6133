// How attention is cut into parts and strips, and its way forward.
#include "engine/ops/cpu/packed_attention.h"

namespace troupe::engine::ops {
namespace {

std::int64_t round_up(std::int64_t count, std::int64_t to) {
  return (count + to - 1) / to * to;
}

/// Floats from a row of scores to the next: an odd number of lines, so that rows do not fall upon
/// each other in a cache.
std::int64_t pitch_for(std::int64_t keys) {
  return panels_width(keys) + 16;
}

}  // namespace

PackedAttention::PackedAttention(FastDevice& device, const Tensor& q, const KeyValues& kv,
                                 const Layout& layout, const AttentionShape& shape,
                                 Precision precision)
    : device_(device),
      kernels_(device.kernels_),
      for_scores_(precision == Precision::bf16 ? device.kernels_.pairs : device.kernels_.dots),
      with_(precision == Precision::bf16 ? device.kernels_.pairs : device.kernels_.singles),
      layout_(layout),
      shape_(shape),
      rows_(kernels_, layout, shape),
      runs_(kv, layout, shape.window),
      q_(in(q)),
      k_(in(kv.k)),
      v_(in(kv.v)) {
}

/// About ten, of whole tiles and pairs.
std::int64_t PackedAttention::strip_rows() const {
  return round_up(
      10, for_scores_.rows % with_.step == 0 ? for_scores_.rows : for_scores_.rows * with_.step);
}

PackedAttention::Part PackedAttention::part_of(std::size_t sequence, int kv_head, int kv_heads,
                                               std::int64_t row, std::int64_t rows) const {
  const Keys seen = keys_seen(layout_, row, row + rows, shape_.window);
  const std::int64_t unseen = seen.first % with_.step;
  return {sequence, kv_head, kv_heads, row, rows, {seen.first - unseen, seen.end}, unseen};
}

std::vector<PackedAttention::Part> PackedAttention::parts(std::int64_t most,
                                                          int most_kv_heads) const {
  std::vector<Part> all;
  for (std::size_t n = 0; n + 1 < layout_.offsets.size(); ++n) {
    const std::int64_t begin = layout_.offsets[n], end = layout_.offsets[n + 1];
    const int together = end - begin == 1 ? most_kv_heads : 1;
    for (int g = 0; g < shape_.kv_heads; g += together) {
      for (std::int64_t row = begin; row < end; row += most)
        all.push_back(
            part_of(n, g, std::min(together, shape_.kv_heads - g), row, std::min(most, end - row)));
    }
  }
  const int threads = device_.pool_.threads();
  for (int thread = 0; thread < threads && std::ssize(all) < std::int64_t{16} * threads; ++thread) {
    const auto [begin, end] = device_.pool_.slice(std::ssize(all), thread);
    std::stable_sort(all.begin() + begin, all.begin() + end, [](const Part& a, const Part& b) {
      return a.rows * a.keys.count() > b.rows * b.keys.count();
    });
  }
  return all;
}

std::vector<PackedAttention::Part> PackedAttention::parts_forward() const {
  const int threads = device_.pool_.threads();
  const std::int64_t enough = threads == 1 ? 1 : std::int64_t{3} * threads,
                     least = 4 * strip_rows();  // against which packing weighs little
  int together = shape_.kv_heads;
  while (together > 1 && layout_.sequences() * (shape_.kv_heads / together) < enough)
    together = (together + 1) / 2;
  std::int64_t most = std::max(round_up(layout_.rows(), strip_rows()), least);
  std::vector<Part> all = parts(most, together);
  while (static_cast<std::int64_t>(all.size()) < enough && most > least) {
    most = std::max(round_up(most / 2, strip_rows()), least);
    all = parts(most, together);
  }
  return all;
}

PackedAttention::Strip PackedAttention::strip_of(const Part& part, std::int64_t head,
                                                 std::int64_t row, std::int64_t rows) const {
  Keys keys = keys_seen(layout_, row, row + rows, shape_.window);
  keys.first -= (keys.first - part.keys.first) % panel_columns;
  return {row * shape_.heads + part.kv_head * share() + head, rows, shape_.heads, keys};
}

std::int64_t PackedAttention::most_keys(const Part& part, std::int64_t rows) const {
  std::int64_t most = 0;
  for (std::int64_t row = part.row; row < part.row + part.rows; row += rows) {
    most = std::max(
        most,
        keys_seen(layout_, row, std::min(row + rows, part.row + part.rows), shape_.window).count());
  }
  return std::min(part.panels(), panels_width(most + panel_columns));
}

PackedAttention::Memory PackedAttention::memory_for(const Part& part, int worker,
                                                    bool backward) const {
  const bool one = part.rows == 1 && !backward;
  const std::int64_t held = one ? panel_columns : part.panels(), depth = for_scores_.steps(size()),
                     wide = panels_width(size());
  const std::int64_t rows = one ? share() * part.kv_heads : strip_rows();
  const std::int64_t keys = most_keys(part, backward ? block_rows(part) : strip_rows()),
                     pitch = pitch_for(keys);
  const std::int64_t block = backward ? with_.steps(block_rows(part)) : 0;
  const std::int64_t by_key = held * depth, by_column = with_.steps(held) * wide;
  const std::int64_t sizes[] = {by_key,
                                backward ? by_key : by_column,
                                panel_columns * size() * part.kv_heads,
                                rows * std::max(depth, with_.steps(keys)),
                                rows * (pitch + 1),
                                backward ? by_column : 0,
                                backward ? rows * pitch : 0,
                                block * wide,
                                block * keys,
                                block * keys};
  std::int64_t total = 0;
  for (const std::int64_t count : sizes) total += round_up(count, 16);
  float* at = device_.score_scratch_[static_cast<std::size_t>(worker)].need(total);
  float* places[std::size(sizes)];
  for (std::size_t i = 0; i < std::size(sizes); ++i) {
    places[i] = at;
    at += round_up(sizes[i], 16);
  }
  return {places[0], places[1], places[2], places[3], places[4], places[5],
          places[6], places[7], places[8], places[9], pitch};
}

void PackedAttention::pack_by_key(const Part& part, const float* from, float* staged,
                                  float* to) const {
  for_each_piece(part, from, panel_columns, staged, [&](const Piece& piece) {
    fetch(piece, 0);
    pack_keys(piece.rows, piece.apart, piece.keys,
              to + (piece.key - part.keys.first) * for_scores_.steps(size()));
  });
}

void PackedAttention::pack_keys(const float* rows, std::int64_t apart, std::int64_t keys,
                                float* to) const {
  const std::int64_t columns = for_scores_.columns, steps = for_scores_.steps(size());
  for (std::int64_t key = 0; key < keys; key += columns)
    for_scores_.pack(
        {rows + key * apart, apart, std::min(columns, keys - key), size(), columns, false},
        to + key * steps);
}

void PackedAttention::pack_by_column(const Part& part, const float* from, float* staged,
                                     float* to) const {
  const std::int64_t steps = with_.steps(part.keys.count());
  for_each_piece(part, from, panel_columns, staged, [&](const Piece& piece) {
    fetch(piece, 0);
    for (std::int64_t column = 0; column < size(); column += panel_columns) {
      with_.pack({piece.rows + column, piece.apart, std::min(panel_columns, size() - column),
                  piece.keys, panel_columns, true},
                 to + column * steps + (piece.key - part.keys.first) / with_.step * panel_columns);
    }
  });
}

void PackedAttention::pack_tiles(const Panels& with, const float* from, std::int64_t apart,
                                 std::int64_t count, std::int64_t depth, float* to) const {
  const std::int64_t height = with.tile(count);
  for (std::int64_t i = 0; i < count; i += height) {
    const std::int64_t rows = std::min(height, count - i);
    with.pack({from + i * apart, apart, rows, depth, rows, false}, to + i * with.steps(depth));
  }
}

void PackedAttention::against_keys(const Part& part, const Strip& strip, const float* left,
                                   const float* packed, float* scores, const Memory& memory) const {
  const std::int64_t steps = for_scores_.steps(size());
  pack_tiles(for_scores_, left + strip.first * size(), strip.stride * size(), strip.rows, size(),
             memory.tiles);
  for_scores_.product({strip.rows, strip.keys.count(), steps, for_scores_.tile(strip.rows),
                       memory.tiles, packed + (strip.keys.first - part.keys.first) * steps, scores,
                       memory.pitch, false});
}

void PackedAttention::over_keys(const Part& part, const Strip& strip, const float* weights,
                                const float* packed, const Memory& memory, float* to) const {
  const std::int64_t before = with_.steps(strip.keys.first - part.keys.first),
                     all = with_.steps(part.keys.count());
  pack_tiles(with_, weights, memory.pitch, strip.rows, strip.keys.count(), memory.tiles);
  for (std::int64_t column = 0; column < size(); column += panel_columns) {
    with_.product({strip.rows, std::min(panel_columns, size() - column),
                   with_.steps(strip.keys.count()), with_.tile(strip.rows), memory.tiles,
                   packed + column * all + before * panel_columns,
                   to + strip.first * size() + column, strip.stride * size(), false});
  }
}

void PackedAttention::weigh(const Strip& strip, float* scores, std::int64_t pitch, float* inverse,
                            float* lse) const {
  for (std::int64_t i = 0; i < strip.rows; ++i) {
    const SoftmaxSums sums = rows_.weigh(strip.pair(i), strip.keys, scores + i * pitch);
    inverse[i] = static_cast<float>(1 / sums.sum);
    if (lse != nullptr) lse[strip.pair(i)] = lse_of(sums);
  }
}

void PackedAttention::forward_part(const Part& part, int worker, float* out, float* lse) const {
  if (part.rows == 1) return forward_row(part, worker, out, lse);
  const Memory memory = memory_for(part, worker, false);
  float* inverse = memory.scores + strip_rows() * memory.pitch;
  pack_by_key(part, k_, memory.staged, memory.keys);
  pack_by_column(part, v_, memory.staged, memory.values);
  for (std::int64_t head = 0; head < share(); ++head) {
    for (std::int64_t row = 0; row < part.rows; row += strip_rows()) {
      const Strip strip =
          strip_of(part, head, part.row + row, std::min(strip_rows(), part.rows - row));
      against_keys(part, strip, q_, memory.keys, memory.scores, memory);
      fetch(strip, q_);
      weigh(strip, memory.scores, memory.pitch, inverse, lse);
      over_keys(part, strip, memory.scores, memory.values, memory, out);
      for (std::int64_t i = 0; i < strip.rows; ++i)
        kernels_.scale(out + strip.pair(i) * size(), inverse[i], size());
    }
  }
}

void PackedAttention::scores_of_row(const Part& part, const Memory& memory, float* packed) const {
  const std::int64_t steps = for_scores_.steps(size()),
                     first = part.row * shape_.heads + part.kv_head * share();
  for (int g = 0; g < part.kv_heads; ++g)
    pack_tiles(for_scores_, q_ + (first + g * share()) * size(), size(), share(), size(),
               memory.tiles + g * share() * steps);
  for_each_piece(part, k_, with_.step, memory.staged, [&](const Piece& piece) {
    for (int g = 0; g < part.kv_heads; ++g) {
      const float* rows = piece.rows + g * size();
      fetch(piece, g);
      pack_keys(rows, piece.apart, piece.keys, packed);
      for_scores_.product({share(), piece.keys, steps, for_scores_.tile(share()),
                           memory.tiles + g * share() * steps, packed,
                           memory.scores + g * share() * memory.pitch + piece.key - part.keys.first,
                           memory.pitch, false});
    }
  });
}

void PackedAttention::values_of_row(const Part& part, const Memory& memory, float* packed,
                                    float* out) const {
  const std::int64_t first = part.row * shape_.heads + part.kv_head * share();
  for_each_piece(part, v_, with_.step, memory.staged, [&](const Piece& piece) {
    const std::int64_t place = piece.key - part.keys.first, steps = with_.steps(piece.keys);
    for (int g = 0; g < part.kv_heads; ++g) {
      const float* rows = piece.rows + g * size();
      fetch(piece, g);
      for (std::int64_t column = 0; column < size(); column += panel_columns) {
        with_.pack({rows + column, piece.apart, std::min(panel_columns, size() - column),
                    piece.keys, panel_columns, true},
                   packed + column * steps);
      }
      pack_tiles(with_, memory.scores + g * share() * memory.pitch + place, memory.pitch, share(),
                 piece.keys, memory.tiles);
      with_.product({share(), size(), steps, with_.tile(share()), memory.tiles, packed,
                     out + (first + g * share()) * size(), size(), place > 0});
    }
  });
}

void PackedAttention::forward_row(const Part& part, int worker, float* out, float* lse) const {
  const Memory memory = memory_for(part, worker, false);
  const Strip heads{part.row * shape_.heads + part.kv_head * share(), share() * part.kv_heads, 1,
                    part.keys};
  float* inverse = memory.scores + heads.rows * memory.pitch;
  scores_of_row(part, memory, memory.keys);
  weigh(heads, memory.scores, memory.pitch, inverse, lse);
  values_of_row(part, memory, memory.values, out);
  for (std::int64_t i = 0; i < heads.rows; ++i)
    kernels_.scale(out + heads.pair(i) * size(), inverse[i], size());
}

void PackedAttention::forward(float* out, float* lse) const {
  const std::vector<Part> all = parts_forward();
  std::int64_t work = 0;
  for (const Part& part : all)
    work += part.rows * part.keys.count() * size() * 2 * share() * part.kv_heads;
  device_.spread(static_cast<std::int64_t>(all.size()), work, [&](std::int64_t i, int worker) {
    forward_part(all[static_cast<std::size_t>(i)], worker, out, lse);
  });
}

}  // namespace troupe::engine::ops
