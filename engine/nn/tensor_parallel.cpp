#include "engine/nn/tensor_parallel.h"

#include "engine/base/errors/check.h"

namespace troupe::engine::nn {

std::span<const std::int32_t> local_rows(const Parameter& table, std::span<const std::int32_t> ids,
                                         std::int32_t elsewhere,
                                         std::vector<std::int32_t>& storage) {
  const auto& shard = table.shard;
  if (shard.whole()) return ids;
  storage.assign(ids.begin(), ids.end());
  for (auto& id : storage) {
    check(id < shard.full, "local_rows: an id beyond the vocabulary");
    if (id < 0) continue;
    id = shard.begin <= id && id < shard.end ? id - static_cast<std::int32_t>(shard.begin)
                                             : elsewhere;
  }
  return storage;
}

ops::ColumnMask local_columns(const Parameter& table, const IdSets& sets) {
  const std::int64_t rows = table.value.shape()[0];
  const bool whole = table.shard.whole();
  const std::int64_t begin = whole ? 0 : table.shard.begin, full = whole ? rows : table.shard.full;
  ops::ColumnMask out{.sets = {}, .bits = {}, .words = (rows + 63) / 64};
  std::int32_t count = 0;
  for (std::size_t t = 0; t < sets.size(); ++t) out.sets.push_back(sets[t].empty() ? -1 : count++);
  out.bits.assign(static_cast<std::size_t>(count * out.words), 0);
  for (std::size_t t = 0; t < sets.size(); ++t) {
    if (sets[t].empty()) continue;
    std::uint64_t* words = out.bits.data() + out.sets[t] * out.words;
    for (const std::int32_t id : value_or_throw(decode_id_set(sets[t], full)))
      if (const std::int64_t own = id - begin; 0 <= own && own < rows)
        words[own / 64] |= std::uint64_t{1} << own % 64;
  }
  return out;
}

}  // namespace troupe::engine::nn
