#include "engine/train/partition.h"

#include <algorithm>

#include "engine/base/errors/check.h"
#include "engine/parallel/all_reduce.h"

namespace troupe::engine::train {

std::vector<Partition> partition_by_tokens(const data::Experience& batch, int ranks) {
  check(ranks >= 1 && batch.sequences_per_group >= 1 &&
            batch.sequences() % batch.sequences_per_group == 0,
        "partition_by_tokens: the batch has an incomplete group");
  const auto tokens = [&](std::int32_t first) {
    return batch.offsets[static_cast<std::size_t>(first + batch.sequences_per_group)] -
           batch.offsets[static_cast<std::size_t>(first)];
  };
  std::vector<std::int32_t> groups;
  for (std::int32_t first = 0; first < batch.sequences(); first += batch.sequences_per_group)
    groups.push_back(first);
  std::stable_sort(groups.begin(), groups.end(),
                   [&](std::int32_t a, std::int32_t b) { return tokens(a) > tokens(b); });

  std::vector<Partition> partitions(static_cast<std::size_t>(ranks));
  std::vector<std::int64_t> load(static_cast<std::size_t>(ranks));
  for (const auto first : groups) {
    const auto lightest =
        static_cast<std::size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    load[lightest] += tokens(first);
    for (int i = 0; i < batch.sequences_per_group; ++i) partitions[lightest].push_back(first + i);
  }
  for (auto& partition : partitions) std::sort(partition.begin(), partition.end());
  return partitions;
}

std::vector<float> gather_column(parallel::Communicator& dp, const std::vector<float>& mine,
                                 const data::Experience& batch,
                                 const std::vector<Partition>& partitions, std::string_view what) {
  const auto found = parallel::gather_floats(dp, mine, what);
  check(found.size() == batch.tokens.size(), "gather_column: a rank lacks tokens of its partition");
  std::vector<float> out(batch.tokens.size());
  auto from = found.begin();
  for (const Partition& partition : partitions)
    for (const auto n : partition) {
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
