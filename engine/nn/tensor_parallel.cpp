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

namespace {

/// Bits begin, ..., begin + to.size() * 64 of `from`; 0 beyond its end.
void copy_bits(std::span<const std::uint64_t> from, std::int64_t begin,
               std::span<std::uint64_t> to) {
  const auto word = [&](std::int64_t i) { return i < std::ssize(from) ? from[i] : 0; };
  const std::int64_t first = begin / 64, shift = begin % 64;
  for (std::int64_t i = 0; i < std::ssize(to); ++i)
    to[i] = shift == 0 ? word(first + i)
                       : word(first + i) >> shift | word(first + i + 1) << (64 - shift);
}

}  // namespace

ops::ColumnMask local_columns(const Parameter& table, const IdSets& sets) {
  const std::int64_t rows = table.value.shape()[0];
  const bool whole = table.shard.whole();
  const std::int64_t begin = whole ? 0 : table.shard.begin, full = whole ? rows : table.shard.full;
  ops::ColumnMask out{.sets = {}, .bits = {}, .words = (rows + 63) / 64};
  std::int32_t count = 0;
  for (std::size_t t = 0; t < sets.size(); ++t) out.sets.push_back(sets[t].empty() ? -1 : count++);
  out.bits.resize(static_cast<std::size_t>(count * out.words));
  std::vector<std::uint64_t> all(whole ? 0 : static_cast<std::size_t>((full + 63) / 64));
  for (std::size_t t = 0; t < sets.size(); ++t) {
    if (sets[t].empty()) continue;
    const std::span own(out.bits.data() + out.sets[t] * out.words,
                        static_cast<std::size_t>(out.words));
    value_or_throw(decode_id_set(sets[t], full, whole ? own : std::span(all)));
    if (whole) continue;
    copy_bits(all, begin, own);
    if (rows % 64 != 0) own.back() &= (std::uint64_t{1} << rows % 64) - 1;  // of the next part
  }
  return out;
}

}  // namespace troupe::engine::nn
