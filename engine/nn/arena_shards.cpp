#include "engine/nn/arena_shards.h"

#include <algorithm>

#include "engine/base/errors/check.h"
#include "engine/ops/norm_block.h"
#include "engine/parallel/all_reduce.h"

namespace troupe::engine::nn {
namespace {

constexpr std::string_view shards_label = "the norm of the gradients' shards";

/// Sums of squares of the blocks of all shards, in the order of the arena.
std::vector<double> block_sums(ops::Device& device, const ArenaShards& shards,
                               const Tensor& grads) {
  const auto& ends = shards.block_ends();
  const auto each_block = [&](const ArenaShards::Piece& piece, const auto& visit) {
    auto end = std::upper_bound(ends.begin(), ends.end(), piece.begin);
    for (std::int64_t begin = piece.begin; begin < piece.end; begin = *end++) visit(begin, *end);
  };
  std::vector<double> mine;
  std::vector<std::size_t> bytes(static_cast<std::size_t>(shards.dp().size()));
  for (const auto& piece : shards.pieces())
    each_block(piece, [&](std::int64_t begin, std::int64_t end) {
      bytes[static_cast<std::size_t>(piece.rank)] += sizeof(double);
      if (piece.rank == shards.dp().rank())
        mine.push_back(device.sum_of_squares(grads.flat(begin, end)));
    });
  std::vector<double> by_rank(ends.size()), in_order;
  shards.dp()
      .start_all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(by_rank)),
                        bytes, shards_label)
      .wait();
  std::vector<std::size_t> next;
  for (std::size_t r = 0, at = 0; r < bytes.size(); at += bytes[r++] / sizeof(double))
    next.push_back(at);
  for (const auto& piece : shards.pieces())
    each_block(piece, [&](std::int64_t, std::int64_t) {
      in_order.push_back(by_rank[next[static_cast<std::size_t>(piece.rank)]++]);
    });
  return in_order;
}

/// For each parameter, whether `holds` is true of some piece of its gradient on some replica.
template <class Holds>
std::vector<float> any_piece(const Parameters& parameters, const ArenaShards& shards,
                             const Holds& holds, std::string_view what) {
  std::vector<float> found;
  std::int64_t at = 0;
  for (const auto& parameter : parameters.all()) {
    const std::int64_t end = at + parameter.value.count();
    bool any = false;
    for (const auto& piece : shards.mine(at, end))
      any = any || holds(parameter.grad.flat(piece.begin - at, piece.end - at));
    found.push_back(any ? 1.0f : 0.0f);
    at = end;
  }
  parallel::all_reduce_max(shards.dp(), found, what);
  return found;
}

}  // namespace

ArenaShards::ArenaShards(const Parameters& parameters, parallel::Communicator& dp, bool by_tensor,
                         std::int64_t bucket)
    : dp_(dp),
      tensors_(collectives::make_tensor_group(parameters.device(), dp)),
      by_tensor_(by_tensor),
      counts_(static_cast<std::size_t>(dp.size())) {
  check(parameters.count() > 0, "ArenaShards: no parameters");
  const auto add_blocks = [this](std::int64_t begin, std::int64_t end) {
    while (begin < end)
      block_ends_.push_back(begin = std::min(begin + ops::sum_of_squares_block, end));
  };
  if (by_tensor) {
    std::int64_t at = 0;
    for (const auto& parameter : parameters.all()) {
      add_blocks(at, at + parameter.value.count());
      at += parameter.value.count();
    }
  } else {
    add_blocks(0, parameters.count());
  }
  std::size_t first = 0;
  for (std::size_t i = 0; i < block_ends_.size(); ++i) {
    const std::int64_t begin = first == 0 ? 0 : block_ends_[first - 1];
    if (block_ends_[i] - begin < bucket && i + 1 < block_ends_.size()) continue;
    add_bucket(first, i + 1);
    first = i + 1;
  }
}

void ArenaShards::add_bucket(std::size_t first_block, std::size_t last_block) {
  const std::int64_t begin = first_block == 0 ? 0 : block_ends_[first_block - 1],
                     size = block_ends_[last_block - 1] - begin;
  const auto ranks = static_cast<std::int64_t>(counts_.size());
  std::int64_t at = begin;
  std::size_t block = first_block;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const std::int64_t wanted = begin + size * (rank + 1) / ranks;
    std::int64_t end = at;
    while (block < last_block && block_ends_[block] <= wanted) end = block_ends_[block++];
    auto& count = counts_[static_cast<std::size_t>(rank)];
    pieces_.push_back({at, end, count, static_cast<int>(rank)});
    count += end - at;
    at = end;
  }
}

std::vector<ArenaShards::Piece> ArenaShards::within(std::int64_t begin, std::int64_t end,
                                                    int rank) const {
  std::vector<Piece> found;
  for (auto piece : pieces_) {
    if (piece.rank != rank || piece.end <= begin || piece.begin >= end) continue;
    const std::int64_t from = std::max(begin, piece.begin);
    found.push_back({from, std::min(end, piece.end), piece.at + from - piece.begin, rank});
  }
  return found;
}

std::pair<std::int64_t, std::int64_t> ArenaShards::range(std::size_t bucket) const {
  const std::size_t ranks = counts_.size();
  return {pieces_[bucket * ranks].begin, pieces_[(bucket + 1) * ranks - 1].end};
}

std::vector<std::size_t> ArenaShards::counts(std::size_t bucket) const {
  std::vector<std::size_t> counts;
  for (std::size_t r = 0; r < counts_.size(); ++r)
    counts.push_back(static_cast<std::size_t>(pieces_[bucket * counts_.size() + r].size()));
  return counts;
}

double sum_of_squares(Parameters& parameters, const ArenaShards& shards,
                      parallel::Communicator* tp) {
  const auto sums = block_sums(parameters.device(), shards, parameters.grads());
  if (!shards.by_tensor()) {
    double total = 0;
    for (const double sum : sums) total += sum;
    return total;
  }
  double total = 0;
  std::size_t block = 0;
  std::int64_t at = 0;
  for (const auto& parameter : parameters.all()) {
    at += parameter.value.count();
    double own = 0;
    for (; block < sums.size() && shards.block_ends()[block] <= at; ++block) own += sums[block];
    if (parameter.shard.first) total += own;
  }
  if (tp != nullptr)
    parallel::all_reduce_sum(*tp, std::span(&total, 1), "the norm of the gradients");
  return total;
}

std::string first_nonfinite_parameter(Parameters& parameters, const ArenaShards& shards,
                                      parallel::Communicator* tp) {
  ops::Device& device = parameters.device();
  auto found = any_piece(
      parameters, shards, [&](const Tensor& grad) { return !device.all_finite(grad); },
      shards_label);
  if (tp != nullptr) parallel::all_reduce_max(*tp, found, shards_label);
  const auto first = std::find(found.begin(), found.end(), 1.0f);
  return first == found.end()
             ? ""
             : parameters.all()[static_cast<std::size_t>(first - found.begin())].name;
}

std::vector<bool> nonzero_gradients(const Parameters& parameters, const ArenaShards& shards) {
  const auto found = any_piece(
      parameters, shards,
      [&](const Tensor& grad) { return parameters.device().sum_of_squares(grad) != 0; },
      "the gradients of tensors");
  return {found.begin(), found.end()};
}

}  // namespace troupe::engine::nn
