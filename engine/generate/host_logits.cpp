#include "engine/generate/host_logits.h"

#include <numeric>

namespace troupe::engine::generate {

std::vector<Alternative> top_alternatives(std::span<const float> logits, float lse, int count) {
  if (count == 0) return {};
  const auto before = [&](std::int32_t a, std::int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  // The best of the ids so far, in their order. Few ids of a vocabulary enter it.
  std::vector<std::int32_t> ids;
  const auto n = static_cast<std::size_t>(count);
  if (n > logits.size() / 8) {
    ids.resize(logits.size());
    std::iota(ids.begin(), ids.end(), 0);
    const std::size_t kept = std::min(n, ids.size());
    std::ranges::partial_sort(ids, ids.begin() + static_cast<std::ptrdiff_t>(kept), before);
    ids.resize(kept);
  }
  for (std::int32_t id = 0; id < std::ssize(logits) && n <= logits.size() / 8; ++id) {
    if (ids.size() == n && logits[id] <= logits[ids.back()]) continue;
    ids.insert(std::ranges::upper_bound(ids, id, before), id);
    if (ids.size() > n) ids.pop_back();
  }
  std::vector<Alternative> top;
  for (const std::int32_t id : ids) top.push_back({id, logits[id] - lse});
  return top;
}

std::int32_t rank_of(std::span<const float> logits, std::int32_t id) {
  const float own = logits[static_cast<std::size_t>(id)];
  std::int32_t rank = 1;
  for (std::int32_t other = 0; other < std::ssize(logits); ++other)
    rank += logits[other] > own || (logits[other] == own && other < id) ? 1 : 0;
  return rank;
}

}  // namespace troupe::engine::generate
