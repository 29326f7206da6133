// KvRuns: the keys that a row sees, and where they are stored.
#pragma once

#include <algorithm>
#include <vector>

#include "engine/ops/device.h"

namespace troupe::engine::ops::cpu {

/// Prefetches `count` rows of `size` floats with leading dimension `ld`: the hardware prefetcher
/// does not follow rows with a large stride. Inlined, because compilers drop calls of functions
/// that only prefetch.
[[gnu::always_inline]] inline void prefetch_rows_of(const float* rows, std::int64_t ld,
                                                    std::int64_t count, std::int64_t size) {
  constexpr std::int64_t line = 16;
  for (std::int64_t row = 0; row < count; ++row, rows += ld) {
    for (std::int64_t column = 0; column < size; column += line) __builtin_prefetch(rows + column);
  }
}

/// Keys first .. end - 1.
struct KeyRange {
  std::int64_t first, end;
  std::int64_t count() const { return end - first; }
  /// The keys of both; an empty range lies in `other`.
  KeyRange within(KeyRange other) const {
    const std::int64_t begin = std::clamp(first, other.first, other.end);
    return {begin, std::clamp(end, begin, other.end)};
  }
};

/// Returns the keys that a row at this position sees.
KeyRange keys_at(std::int64_t position, int window);
/// Returns the keys that any of the rows begin .. end - 1 sees.
KeyRange keys_seen(const Layout& layout, std::int64_t begin, std::int64_t end, int window);

/// The keys that the rows of a call see.
class SeenKeys {
 public:
  SeenKeys(const KeyValues& kv, const Layout& layout, int window);
  KeyRange at(std::int64_t row) const { return clip(row, keys_at(position(row), window_)); }
  /// Those of the rows begin .. end - 1 of a sequence.
  KeyRange of(std::int64_t begin, std::int64_t end) const {
    return clip(begin, keys_seen(layout_, begin, end, window_));
  }
  std::int64_t position(std::int64_t row) const {
    return layout_.positions[static_cast<std::size_t>(row)];
  }
  /// The keys of a sequence that are given, without pages.
  KeyBlock block(std::size_t sequence) const {
    if (!blocks_.empty()) return blocks_[sequence];
    return {0, layout_.offsets[sequence + 1] - layout_.offsets[sequence],
            layout_.offsets[sequence]};
  }

 private:
  KeyRange clip(std::int64_t row, KeyRange keys) const {
    if (blocks_.empty()) return keys;
    const KeyBlock& block = blocks_[sequence_[static_cast<std::size_t>(row)]];
    return {std::max(keys.first, block.first), std::min(keys.end, block.end)};
  }

  const Layout& layout_;
  int window_;
  std::span<const KeyBlock> blocks_;
  std::vector<std::size_t> sequence_;  ///< of each row, with blocks
};

/// Keys key .. key + keys - 1 of a sequence, stored in rows row, row + 1, ...
struct KvRun {
  std::int64_t key, keys, row;
};

/// The maximal runs of contiguous keys of every sequence.
class KvRuns {
 public:
  KvRuns(const KeyValues& kv, const PreparedLayout& layout, int window);
  /// Calls visit(run, next) for the runs of `keys` of a sequence. `next` is the whole following
  /// run, or has no keys after the last one.
  template <class Visit>
  void for_each(std::size_t sequence, KeyRange keys, Visit visit) const;

 private:
  void append(const KeyValues& kv, const PreparedLayout& layout, std::size_t sequence,
              KeyRange keys);
  std::vector<KvRun> runs_;
  std::vector<std::size_t> first_;  ///< [N+1]
};

template <class Visit>
void KvRuns::for_each(std::size_t sequence, KeyRange keys, Visit visit) const {
  const std::size_t end = first_[sequence + 1];
  for (std::size_t i = first_[sequence]; i < end && runs_[i].key < keys.end; ++i) {
    const std::int64_t skipped = std::max<std::int64_t>(0, keys.first - runs_[i].key);
    if (skipped >= runs_[i].keys) continue;
    const KvRun seen{runs_[i].key + skipped,
                     std::min(runs_[i].keys, keys.end - runs_[i].key) - skipped,
                     runs_[i].row + skipped};
    visit(seen, i + 1 < end ? runs_[i + 1] : KvRun{});
  }
}

}  // namespace troupe::engine::ops::cpu
