#include "engine/generate/host_logits.h"

namespace troupe::engine::generate {

std::vector<Alternative> top_alternatives(std::span<const float> logits, float lse, int count) {
  if (count == 0) return {};
  std::vector<std::int32_t> ids(logits.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i);
  const auto n = std::min<std::ptrdiff_t>(count, std::ssize(ids));
  std::partial_sort(ids.begin(), ids.begin() + n, ids.end(), [&](std::int32_t a, std::int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  std::vector<Alternative> top;
  for (std::ptrdiff_t i = 0; i < n; ++i) top.push_back({ids[i], logits[ids[i]] - lse});
  return top;
}

}  // namespace troupe::engine::generate
