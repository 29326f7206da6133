#include "engine/generate/host_logits.h"

namespace troupe::engine::generate {

std::vector<Alternative> top_alternatives(std::span<const float> logits, float lse, int count) {
  if (count == 0) return {};
  const auto before = [&](std::int32_t a, std::int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  // The best of the ids so far, in their order. Few ids of a vocabulary enter it.
  std::vector<std::int32_t> ids;
  const auto n = static_cast<std::size_t>(count);
  for (std::int32_t id = 0; id < std::ssize(logits); ++id) {
    if (ids.size() == n && logits[id] <= logits[ids.back()]) continue;
    ids.insert(std::ranges::upper_bound(ids, id, before), id);
    if (ids.size() > n) ids.pop_back();
  }
  std::vector<Alternative> top;
  for (const std::int32_t id : ids) top.push_back({id, logits[id] - lse});
  return top;
}

}  // namespace troupe::engine::generate
