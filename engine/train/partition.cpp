#include "engine/train/partition.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/parallel/all_reduce.h"

namespace troupe::engine::train {

std::vector<Share> share_out(const data::Experience& batch, int ranks) {
  check(ranks >= 1 && batch.unit >= 1 && batch.sequences() % batch.unit == 0,
        "share_out: the batch is not one of whole units");
  const auto tokens = [&](std::int32_t first) {
    return batch.offsets[static_cast<std::size_t>(first + batch.unit)] -
           batch.offsets[static_cast<std::size_t>(first)];
  };
  std::vector<std::int32_t> units;
  for (std::int32_t first = 0; first < batch.sequences(); first += batch.unit)
    units.push_back(first);
  std::stable_sort(units.begin(), units.end(),
                   [&](std::int32_t a, std::int32_t b) { return tokens(a) > tokens(b); });

  std::vector<Share> shares(static_cast<std::size_t>(ranks));
  std::vector<std::int64_t> load(static_cast<std::size_t>(ranks));
  for (const auto first : units) {
    const auto least =
        static_cast<std::size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    load[least] += tokens(first);
    for (int i = 0; i < batch.unit; ++i) shares[least].push_back(first + i);
  }
  for (auto& share : shares) std::sort(share.begin(), share.end());
  return shares;
}

std::vector<float> gather_column(parallel::Communicator& dp, const std::vector<float>& mine,
                                 const data::Experience& batch, const std::vector<Share>& shares,
                                 std::string_view what) {
  const auto found = parallel::gather_floats(dp, mine, what);
  check(found.size() == batch.tokens.size(), "gather_column: a rank lacks tokens of its share");
  std::vector<float> out(batch.tokens.size());
  auto from = found.begin();
  for (const Share& share : shares)
    for (const auto n : share) {
      const auto begin = batch.offsets[static_cast<std::size_t>(n)],
                 length = batch.offsets[static_cast<std::size_t>(n) + 1] - begin;
      std::copy_n(from, length, out.begin() + begin);
      from += length;
    }
  return out;
}

std::vector<float> select_column(const std::vector<float>& column, const data::Experience& batch,
                                 std::span<const std::int32_t> sequences) {
  std::vector<float> out;
  for (const auto n : sequences)
    out.insert(out.end(), column.begin() + batch.offsets[static_cast<std::size_t>(n)],
               column.begin() + batch.offsets[static_cast<std::size_t>(n) + 1]);
  return out;
}

}  // namespace troupe::engine::train
