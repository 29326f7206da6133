#include "engine/nn/head_exchange.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace troupe::engine::nn {
namespace {

using parallel::even_range;
using parallel::Range;

// Whole groups of query heads.
OwnHeads whole_groups(Range groups, std::int64_t per_group) {
  OwnHeads own{{groups.begin * per_group, groups.end * per_group}, {}};
  for (auto group = groups.begin; group < groups.end; ++group) own.kv_heads.push_back(group);
  return own;
}

// Any range of query heads: of one group, or each with a key/value head of its own.
OwnHeads any_heads(Range heads, std::int64_t per_group) {
  OwnHeads own{heads, {}};
  for (auto head = heads.begin; head < heads.end; ++head) own.kv_heads.push_back(head / per_group);
  if (heads.size() > 0 && own.kv_heads.front() == own.kv_heads.back()) own.kv_heads.resize(1);
  return own;
}

}  // namespace

std::vector<OwnHeads> divide_heads(int heads, int kv_heads, int ranks) {
  const std::int64_t per_group = heads / kv_heads;
  std::vector<OwnHeads> all;
  for (int rank = 0; rank < ranks; ++rank)
    all.push_back(ranks <= kv_heads ? whole_groups(even_range(kv_heads, rank, ranks), per_group)
                                    : any_heads(even_range(heads, rank, ranks), per_group));
  return all;
}

HeadExchange::HeadExchange(const ContextPart& part, std::vector<std::vector<std::int64_t>> heads,
                           std::int64_t count, int size)
    : part_(part), heads_(std::move(heads)), count_(count), size_(size) {
}

std::vector<std::size_t> HeadExchange::counts_by_heads() const {
  std::vector<std::size_t> counts;
  for (const auto& heads : heads_)
    counts.push_back(static_cast<std::size_t>(part_.own().size() * size_) * heads.size());
  return counts;
}

std::vector<std::size_t> HeadExchange::counts_by_rows() const {
  std::vector<std::size_t> counts;
  for (int rank = 0; rank < part_.ranks(); ++rank)
    counts.push_back(static_cast<std::size_t>(part_.rows_of(rank).size() * size_) * own_heads());
  return counts;
}

std::vector<std::int32_t> HeadExchange::blocks() const {
  std::vector<std::int32_t> blocks;
  for (const auto& heads : heads_)
    for (std::int64_t row = 0; row < part_.own().size(); ++row)
      for (const auto head : heads)
        blocks.push_back(static_cast<std::int32_t>(row * count_ + head));
  return blocks;
}

Tensor HeadExchange::to_heads(ops::Device& device, const Tensor& x, std::string_view what) const {
  const ops::Indices order = device.indices(blocks());
  Tensor packed = device.empty({std::ssize(order.host), size_});
  device.gather_rows(x.view({part_.own().size() * count_, size_}), order, packed);
  Tensor to = device.empty({part_.rows(), static_cast<std::int64_t>(own_heads()) * size_});
  part_.groups->heads->start_all_to_all(packed, counts_by_heads(), to, counts_by_rows(), what)
      .wait();
  return to;
}

Tensor HeadExchange::to_rows(ops::Device& device, const Tensor& x, std::string_view what) const {
  const ops::Indices order = device.indices(blocks());
  Tensor received = device.empty({std::ssize(order.host), size_});
  part_.groups->heads->start_all_to_all(x, counts_by_rows(), received, counts_by_heads(), what)
      .wait();
  Tensor to = device.empty({part_.own().size(), count_ * size_}),
         heads = to.view({part_.own().size() * count_, size_});
  device.fill(to, 0);
  device.scatter_add_rows(received, order, heads);
  return to;
}

AttentionExchange attention_exchange(const ContextPart& part, const ops::AttentionShape& whole) {
  std::vector<std::vector<std::int64_t>> heads, kv_heads;
  ops::AttentionShape own = whole;
  const auto division = divide_heads(whole.heads, whole.kv_heads, part.ranks());
  for (const OwnHeads& each : division) {
    heads.emplace_back(static_cast<std::size_t>(each.heads.size()));
    std::iota(heads.back().begin(), heads.back().end(), each.heads.begin);
    kv_heads.push_back(each.kv_heads);
  }
  const OwnHeads& mine = division[static_cast<std::size_t>(part.rank())];
  own.heads = static_cast<int>(mine.heads.size());
  own.kv_heads = static_cast<int>(mine.kv_heads.size());
  if (!whole.alibi_slopes.empty())
    own.alibi_slopes.assign(whole.alibi_slopes.begin() + mine.heads.begin,
                            whole.alibi_slopes.begin() + mine.heads.end);
  return {HeadExchange(part, std::move(heads), whole.heads, whole.head_size),
          HeadExchange(part, std::move(kv_heads), whole.kv_heads, whole.head_size), own,
          mine.heads.begin};
}

}  // namespace troupe::engine::nn
