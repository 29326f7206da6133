#include "engine/train/share.h"

#include <algorithm>

#include "engine/base/check.h"

namespace troupe::engine::train {

std::vector<Share> share_out(const data::Experience& batch, int ranks) {
  check(ranks >= 1 && batch.unit >= 1 && batch.sequences() % batch.unit == 0, "share_out: the batch is not one of whole units");
  const auto tokens = [&](std::int32_t first) {
    return batch.offsets[static_cast<std::size_t>(first + batch.unit)] - batch.offsets[static_cast<std::size_t>(first)];
  };
  std::vector<std::int32_t> units;
  for (std::int32_t first = 0; first < batch.sequences(); first += batch.unit) units.push_back(first);
  std::stable_sort(units.begin(), units.end(), [&](std::int32_t a, std::int32_t b) { return tokens(a) > tokens(b); });

  std::vector<Share> shares(static_cast<std::size_t>(ranks));
  std::vector<std::int64_t> load(static_cast<std::size_t>(ranks));
  for (const auto first : units) {
    const auto least = static_cast<std::size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    load[least] += tokens(first);
    for (int i = 0; i < batch.unit; ++i) shares[least].push_back(first + i);
  }
  for (auto& share : shares) std::sort(share.begin(), share.end());
  return shares;
}

}  // namespace troupe::engine::train
