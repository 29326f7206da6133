#include "engine/nn/head_exchange.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/ops/host_values.h"

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

std::vector<std::size_t> HeadExchange::bytes_by_heads() const {
  std::vector<std::size_t> bytes;
  for (const auto& heads : heads_)
    bytes.push_back(sizeof(float) * values(part_.own().size(), heads.size()));
  return bytes;
}

std::vector<std::size_t> HeadExchange::bytes_by_rows() const {
  std::vector<std::size_t> bytes;
  for (int rank = 0; rank < part_.ranks(); ++rank)
    bytes.push_back(sizeof(float) * values(part_.rows_of(rank).size(), own_heads()));
  return bytes;
}

Tensor HeadExchange::to_heads(ops::Device& device, const Tensor& x, std::string_view what) const {
  ops::HostValues from(device, x);
  const auto rows = static_cast<std::size_t>(part_.own().size());
  const auto size = static_cast<std::size_t>(size_),
             width = static_cast<std::size_t>(count_) * size;
  std::vector<float> packed;
  for (const auto& heads : heads_)
    for (std::size_t row = 0; row < rows; ++row)
      for (const auto head : heads) {
        const auto block =
            from.values().subspan(row * width + static_cast<std::size_t>(head) * size, size);
        packed.insert(packed.end(), block.begin(), block.end());
      }
  Tensor to = device.empty({part_.rows(), static_cast<std::int64_t>(own_heads() * size)});
  ops::HostValues into(device, to);
  part_.groups->heads
      ->start_all_to_all(std::as_bytes(std::span(packed)), bytes_by_heads(),
                         std::as_writable_bytes(into.values()), bytes_by_rows(), what)
      .wait();
  into.store();
  return to;
}

Tensor HeadExchange::to_rows(ops::Device& device, const Tensor& x, std::string_view what) const {
  const auto rows = static_cast<std::size_t>(part_.own().size());
  const auto size = static_cast<std::size_t>(size_),
             width = static_cast<std::size_t>(count_) * size;
  const auto bytes = bytes_by_heads();
  std::vector<float> received(std::accumulate(bytes.begin(), bytes.end(), std::size_t{0}) /
                              sizeof(float));
  {
    ops::HostValues from(device, x);
    part_.groups->heads
        ->start_all_to_all(std::as_bytes(from.values()), bytes_by_rows(),
                           std::as_writable_bytes(std::span(received)), bytes, what)
        .wait();
  }
  Tensor to = device.empty({part_.own().size(), static_cast<std::int64_t>(width)});
  ops::HostValues into(device, to);
  std::ranges::fill(into.values(), 0.0f);
  auto block = received.begin();
  for (const auto& heads : heads_)
    for (std::size_t row = 0; row < rows; ++row)
      for (const auto head : heads) {
        const auto sum =
            into.values().subspan(row * width + static_cast<std::size_t>(head) * size, size);
        for (float& value : sum) value += *block++;
      }
  into.store();
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
