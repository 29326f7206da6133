// What attention does in either precision: which keys a row sees, where they lie, and what becomes
// of a row's scores between its products.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/ops/cpu/kernels.h"
#include "engine/ops/device.h"

namespace troupe::engine::ops {

/// Has `count` rows of `size` floats, `apart`, fetched into the cache: where they are far apart the
/// processor does not look ahead. Inlined, since a compiler calls no function that only does so.
[[gnu::always_inline]] inline void fetch_rows(const float* rows, std::int64_t apart,
                                              std::int64_t count, std::int64_t size) {
  constexpr std::int64_t line = 16;
  for (std::int64_t row = 0; row < count; ++row, rows += apart) {
    for (std::int64_t column = 0; column < size; column += line) __builtin_prefetch(rows + column);
  }
}

/// The keys first .. end - 1.
struct Keys {
  std::int64_t first, end;
  std::int64_t count() const { return end - first; }
};

/// Those that some of the rows see.
Keys keys_seen(const Layout& layout, std::int64_t begin, std::int64_t end, int window);

/// Keys key .. key + keys - 1 of a sequence, which lie in rows row, row + 1, ...
struct KeyRun {
  std::int64_t key, keys, row;
};

/// The longest runs of keys of every sequence that lie together.
class KeyRuns {
 public:
  KeyRuns(const KeyValues& kv, const Layout& layout, int window);
  /// visit(run, next) for these keys of a sequence; `next` is the whole of the run behind it, of no
  /// keys where there is none.
  template <class Visit>
  void for_each(std::size_t sequence, Keys keys, Visit visit) const;

 private:
  void append(const KeyValues& kv, const Layout& layout, std::size_t sequence, Keys keys);
  std::vector<KeyRun> runs_;
  std::vector<std::size_t> first_;  ///< [N+1]
};

template <class Visit>
void KeyRuns::for_each(std::size_t sequence, Keys keys, Visit visit) const {
  const std::size_t end = first_[sequence + 1];
  for (std::size_t i = first_[sequence]; i < end && runs_[i].key < keys.end; ++i) {
    const std::int64_t skipped = std::max<std::int64_t>(0, keys.first - runs_[i].key);
    if (skipped >= runs_[i].keys) continue;
    const KeyRun seen{runs_[i].key + skipped,
                      std::min(runs_[i].keys, keys.end - runs_[i].key) - skipped,
                      runs_[i].row + skipped};
    visit(seen, i + 1 < end ? runs_[i + 1] : KeyRun{});
  }
}

/// The rows of q as (row, head) pairs, row * H + head.
class AttentionRows {
 public:
  AttentionRows(const Kernels& kernels, const Layout& layout, const AttentionShape& shape)
      : kernels_(kernels), layout_(layout), shape_(shape) {}
  /// That a pair's row sees.
  Keys keys_of(std::int64_t pair) const;
  /// Products with the keys `of` become weights e, not yet divided by their sum; those of keys that
  /// the row does not see become zeros.
  SoftmaxSums weigh(std::int64_t pair, Keys of, float* products) const;
  /// Products with the keys `of` become weights p, and products of dout with the values the
  /// gradients of the former; zeros as above. `dot`: of out and dout.
  void slopes(std::int64_t pair, Keys of, float dot, float lse, float* p, float* ds) const;

 private:
  /// What remains to multiply scores by when they are capped and tilted.
  float factor() const { return shape_.softcap == 0 && shape_.slopes.empty() ? shape_.scale : 1; }
  /// Products become scaled and capped.
  void cap(float* scores, Keys keys) const;
  /// And get their slope.
  void tilt(float* scores, std::int64_t pair, Keys keys) const;

  const Kernels& kernels_;
  const Layout& layout_;
  const AttentionShape& shape_;
};

inline float lse_of(const SoftmaxSums& sums) {
  return static_cast<float>(double{sums.largest} + std::log(sums.sum));
}

}  // namespace troupe::engine::ops
