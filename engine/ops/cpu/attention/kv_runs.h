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
};

/// Returns the keys that a row at this position sees.
KeyRange keys_at(std::int64_t position, int window);
/// Returns the keys that any of the rows begin .. end - 1 sees.
KeyRange keys_seen(const Layout& layout, std::int64_t begin, std::int64_t end, int window);

/// Keys key .. key + keys - 1 of a sequence, stored in rows row, row + 1, ...
struct KvRun {
  std::int64_t key, keys, row;
};

/// The maximal runs of contiguous keys of every sequence.
class KvRuns {
 public:
  KvRuns(const KeyValues& kv, const Layout& layout, int window);
  /// Calls visit(run, next) for the runs of `keys` of a sequence. `next` is the whole following
  /// run, or has no keys after the last one.
  template <class Visit>
  void for_each(std::size_t sequence, KeyRange keys, Visit visit) const;

 private:
  void append(const KeyValues& kv, const Layout& layout, std::size_t sequence, KeyRange keys);
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
