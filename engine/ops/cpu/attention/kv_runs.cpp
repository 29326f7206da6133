#include "engine/ops/cpu/attention/kv_runs.h"

namespace troupe::engine::ops::cpu {

KeyRange keys_at(std::int64_t position, int window) {
  return {window == 0 ? 0 : std::max<std::int64_t>(0, position + 1 - window), position + 1};
}

KeyRange keys_seen(const Layout& layout, std::int64_t begin, std::int64_t end, int window) {
  const auto [minimum, maximum] =
      std::minmax_element(layout.positions.begin() + begin, layout.positions.begin() + end);
  return {keys_at(*minimum, window).first, std::int64_t{*maximum} + 1};
}

SeenKeys::SeenKeys(const KeyValues& kv, const Layout& layout, int window)
    : layout_(layout), window_(window), blocks_(kv.blocks) {
  if (blocks_.empty()) return;
  for (std::size_t n = 0; n + 1 < layout.offsets.size(); ++n)
    sequence_.insert(sequence_.end(),
                     static_cast<std::size_t>(layout.offsets[n + 1] - layout.offsets[n]), n);
}

KvRuns::KvRuns(const KeyValues& kv, const PreparedLayout& layout, int window) {
  for (std::size_t n = 0; n + 1 < layout.offsets.size(); ++n) {
    first_.push_back(runs_.size());
    if (layout.offsets[n] < layout.offsets[n + 1])
      append(kv, layout, n, keys_seen(layout, layout.offsets[n], layout.offsets[n + 1], window));
  }
  first_.push_back(runs_.size());
}

void KvRuns::append(const KeyValues& kv, const PreparedLayout& layout, std::size_t n,
                    KeyRange keys) {
  if (!kv.blocks.empty()) {
    const KeyBlock& block = kv.blocks[n];
    return runs_.push_back({block.first, block.end - block.first, block.row});
  }
  const std::int64_t size = layout.pages.size;
  if (size == 0) return runs_.push_back({0, keys.end, layout.offsets[n]});
  const auto& pages = layout.pages.numbers[n];
  for (std::int64_t key = keys.first / size * size; key < keys.end; key += runs_.back().keys) {
    const auto first = static_cast<std::size_t>(key / size);
    std::size_t last = first + 1;
    while (static_cast<std::int64_t>(last) * size < keys.end && pages[last] == pages[last - 1] + 1)
      ++last;
    runs_.push_back({key, std::min(keys.end - key, static_cast<std::int64_t>(last - first) * size),
                     pages[first] * size});
  }
}

}  // namespace troupe::engine::ops::cpu
