#include "engine/ops/cpu/attention_rows.h"

#include <utility>

namespace troupe::engine::ops {
namespace {

/// Those that a row at this position sees.
Keys keys_at(std::int64_t position, int window) {
  return {window == 0 ? 0 : std::max<std::int64_t>(0, position + 1 - window), position + 1};
}

/// A row of values for the keys `of`, of which only its own shall be there.
void clear_around(float* row, Keys of, Keys own) {
  std::fill(row, row + (own.first - of.first), 0.0F);
  std::fill(row + (own.end - of.first), row + of.count(), 0.0F);
}

}  // namespace

Keys keys_seen(const Layout& layout, std::int64_t begin, std::int64_t end, int window) {
  const auto [least, most] =
      std::minmax_element(layout.positions.begin() + begin, layout.positions.begin() + end);
  return {keys_at(*least, window).first, std::int64_t{*most} + 1};
}

KeyRuns::KeyRuns(const KeyValues& kv, const Layout& layout, int window) {
  for (std::size_t n = 0; n + 1 < layout.offsets.size(); ++n) {
    first_.push_back(runs_.size());
    if (layout.offsets[n] < layout.offsets[n + 1])
      append(kv, layout, n, keys_seen(layout, layout.offsets[n], layout.offsets[n + 1], window));
  }
  first_.push_back(runs_.size());
}

/// From the page of the first key on.
void KeyRuns::append(const KeyValues& kv, const Layout& layout, std::size_t n, Keys keys) {
  if (kv.page_size == 0) return runs_.push_back({0, keys.end, layout.offsets[n]});
  const auto& pages = kv.pages[n];
  const std::int64_t size = kv.page_size;
  for (std::int64_t key = keys.first / size * size; key < keys.end; key += runs_.back().keys) {
    const auto first = static_cast<std::size_t>(key / size);
    std::size_t last = first + 1;
    while (static_cast<std::int64_t>(last) * size < keys.end && pages[last] == pages[last - 1] + 1)
      ++last;
    runs_.push_back({key, std::min(keys.end - key, static_cast<std::int64_t>(last - first) * size),
                     pages[first] * size});
  }
}

Keys AttentionRows::keys_of(std::int64_t pair) const {
  return keys_at(layout_.positions[static_cast<std::size_t>(pair / shape_.heads)], shape_.window);
}

void AttentionRows::cap(float* scores, Keys keys) const {
  if (shape_.softcap != 0) return kernels_.cap(scores, keys.count(), shape_.scale, shape_.softcap);
  if (!shape_.slopes.empty()) kernels_.scale(scores, shape_.scale, keys.count());
}

void AttentionRows::tilt(float* scores, std::int64_t pair, Keys keys) const {
  if (shape_.slopes.empty()) return;
  const float slope = shape_.slopes[static_cast<std::size_t>(pair % shape_.heads)];
  kernels_.tilt(scores, keys.count(), slope, keys.first + 1 - keys.end);
}

SoftmaxSums AttentionRows::weigh(std::int64_t pair, Keys of, float* products) const {
  const Keys own = keys_of(pair);
  float* at = products + (own.first - of.first);
  cap(at, own);
  tilt(at, pair, own);
  const SoftmaxSums sums = kernels_.softmax_in_place(at, own.count(), factor());
  clear_around(products, of, own);
  return sums;
}

void AttentionRows::slopes(std::int64_t pair, Keys of, float dot, float lse, float* p,
                           float* ds) const {
  const Keys own = keys_of(pair);
  const std::int64_t before = own.first - of.first;
  cap(p + before, own);
  if (shape_.softcap != 0)
    kernels_.cap_backward(p + before, ds + before, own.count(), shape_.softcap,
                          std::exchange(dot, 0.0F));
  tilt(p + before, pair, own);
  kernels_.attention_weights(p + before, own.count(), factor(), lse);
  kernels_.attention_dscores(p + before, ds + before, own.count(), dot, shape_.scale);
  for (float* row : {p, ds}) clear_around(row, of, own);
}

}  // namespace troupe::engine::ops
