#include "engine/ops/cpu/head_pass.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe::engine::ops {
namespace {

constexpr std::int64_t block_rows = 112;  // at most

}  // namespace

RowResult::RowResult(const SoftmaxSums& sums) {
  const double log_sum = std::log(sums.sum);
  lse = static_cast<float>(double{sums.largest} + log_sum);
  entropy = static_cast<float>(log_sum - sums.weighted / sums.sum);
}

SoftmaxSums joined(std::span<const SoftmaxSums> blocks) {
  SoftmaxSums all{blocks[0].largest, 0, 0};
  for (const auto& block : blocks) {
    if (block.largest != block.largest) return block;  // a NaN is everybody's
    all.largest = std::max(all.largest, block.largest);
  }
  for (const auto& block : blocks) {
    const double below = double{block.largest} - double{all.largest}, share = std::exp(below);
    if (!(share > 0)) continue;
    all.sum += share * block.sum;
    all.weighted += share * (block.weighted + below * block.sum);
  }
  return all;
}

HeadPass::HeadPass(FastDevice& device, const Tensor& hidden, const Tensor& weight,
                   std::span<const std::int32_t> targets, const HeadScale& scale,
                   Precision precision, const HeadAdapter* adapter)
    : device_(device),
      kernels_(device.kernels_),
      for_logits_(precision == Precision::bf16 ? device.kernels_.pairs : device.kernels_.dots),
      with_(precision == Precision::bf16 ? device.kernels_.pairs : device.kernels_.singles),
      targets_(targets),
      scale_(scale),
      vocabulary_(rows_of(weight)),
      blocks_(head_blocks(vocabulary_)),
      pitch_(std::min(head_block, (vocabulary_ + 15) / 16 * 16) / 32 * 32 + 16),
      vocabulary_tile_(with_.rows) {
  check_head(hidden, weight, targets);
  check_head_adapter(adapter, rows_of(hidden), vocabulary_);
  while (head_block % vocabulary_tile_ != 0) --vocabulary_tile_;
  unit_ = std::lcm(for_logits_.rows, with_.step);
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (targets[t] != no_target) rows_.push_back(static_cast<std::int32_t>(t));
  }
  const auto add = [&](const Tensor& inputs, const Tensor& factor,
                       FastDevice::HeadScratch& scratch) {
    factors_.push_back(
        {in(inputs), in(factor), width_of(factor), for_logits_.steps(width_of(factor)), scratch});
  };
  add(hidden, weight, device.head_scratch_[0]);
  span_ =
      std::max<std::int64_t>(
          1, head_weight_words / (std::max<std::int64_t>(1, factors_[0].steps) * head_columns)) *
      head_columns;
  if (adapter != nullptr) add(adapter->down, adapter->up, device.head_scratch_[1]);
}

std::int64_t HeadPass::height_for(std::int64_t rows) const {
  constexpr std::int64_t lost = 4;  // rows' worth of time that a block takes beside its rows', for
                                    // reading what it is multiplied by
  const std::int64_t threads = device_.pool_.threads();
  std::int64_t best = 0, least = 0;
  for (std::int64_t height = block_rows / unit_ * unit_; height > 0; height -= unit_) {
    const std::int64_t whole = rows / height, rest = rows % height,
                       rounds = (whole + threads - 1) / threads;
    const std::int64_t longest =
        rounds * (height + lost) + (whole % threads == 0 && rest > 0 ? rest + lost : 0);
    if (best == 0 || longest < least) best = height, least = longest;
  }
  return best;
}

void HeadPass::gather_inputs(const Chunk& chunk) {
  for (Factor& factor : factors_) {
    float* rows = factor.scratch.gathered.need(chunk.rows * factor.width);
    for (std::int64_t i = 0; i < chunk.rows; ++i)
      std::copy_n(factor.inputs + token(chunk, i) * factor.width, factor.width,
                  rows + i * factor.width);
  }
}

void HeadPass::pack_inputs(const Chunk& chunk) {
  for (Factor& factor : factors_)
    device_.pack_tiles(for_logits_,
                       {factor.scratch.gathered.at(), factor.width, chunk.rows, factor.width,
                        for_logits_.rows, false},
                       factor.scratch.left.need(factor.steps * chunk.rows));
}

const HeadPass::Weights& HeadPass::own_weights(const Block& block, int worker) {
  Weights& own = own_weights_[static_cast<std::size_t>(worker)];
  if (own.column == block.column) return own;
  const std::int64_t panel = for_logits_.columns, width = for_logits_.width(head_block);
  std::int64_t words = 0;
  for (const Factor& factor : factors_) words += factor.steps * width;
  float* to = device_.product_scratch_[static_cast<std::size_t>(worker)].need(words);
  own.column = block.column;
  for (std::size_t i = 0; i < factors_.size(); ++i) {
    const Factor& factor = factors_[i];
    own.of[i] = to;
    for (std::int64_t j = 0; j < block.columns; j += panel) {
      const float* from = factor.weight + (block.column + j) * factor.width;
      for_logits_.pack(
          {from, factor.width, std::min(panel, block.columns - j), factor.width, panel, false},
          to + j * factor.steps);
    }
    to += factor.steps * width;
  }
  return own;
}

void HeadPass::make_logits(const Block& block, const Weights& weights, float* z) const {
  for (std::size_t i = 0; i < factors_.size(); ++i) {
    const Factor& factor = factors_[i];
    for_logits_.product({block.rows, block.columns, factor.steps, for_logits_.rows,
                         factor.scratch.left.at() + block.row * factor.steps, weights.of[i], z,
                         pitch_, i > 0});
  }
  for (std::int64_t i = 0; i < block.rows; ++i)
    device_.scale_row(z + i * pitch_, block.columns, scale_);
}

void HeadPass::forward_block(const Chunk& chunk, const Block& block, const float* z,
                             bool weighted) {
  for (std::int64_t i = 0; i < block.rows; ++i, z += pitch_) {
    const std::int64_t row = block.row + i;
    const std::int32_t target = targets_[static_cast<std::size_t>(token(chunk, row))];
    sums_[static_cast<std::size_t>(row * blocks_ + block.column / head_block)] =
        kernels_.softmax_sums(z, block.columns, scale_.inv_temperature, weighted);
    if (target >= block.column && target < block.column + block.columns)
      target_logit_[static_cast<std::size_t>(row)] = z[target - block.column];
  }
}

void HeadPass::keep(const Chunk& chunk, const Block& block, const float* z, float* kept) const {
  for (std::int64_t i = 0; i < block.rows; i += unit_)
    kernels_.copy_lines(z + i * pitch_, kept + place(chunk, block.row + i, block.column),
                        std::min(unit_, block.rows - i) * pitch_);
}

void HeadPass::finish_rows(const Chunk& chunk, const HeadScores& to) const {
  device_.share(chunk.rows, 64 * blocks_, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int32_t t = token(chunk, i);
      const RowResult row(joined(std::span(sums_).subspan(static_cast<std::size_t>(i * blocks_),
                                                          static_cast<std::size_t>(blocks_))));
      if (targets_[static_cast<std::size_t>(t)] >= 0)
        to.logp[t] = row.logp(target_logit_[static_cast<std::size_t>(i)], scale_.inv_temperature);
      to.lse[t] = row.lse;
      if (to.entropy != nullptr) to.entropy[t] = row.entropy;
    }
  });
}

void HeadPass::forward_chunk(const Chunk& chunk, const HeadScores& to, float* kept) {
  pack_inputs(chunk);
  sums_.resize(static_cast<std::size_t>(chunk.rows * blocks_));
  target_logit_.resize(static_cast<std::size_t>(chunk.rows));
  own_weights_.assign(static_cast<std::size_t>(device_.pool_.threads()), {});
  for_each_block(chunk, {0, vocabulary_}, [&](const Block& block, const Room& room) {
    make_logits(block, own_weights(block, room.worker), room.logits);
    forward_block(chunk, block, room.logits, to.entropy != nullptr);
    if (kept != nullptr) keep(chunk, block, room.logits, kept);
  });
  finish_rows(chunk, to);
}

void HeadPass::forward(const HeadScores& to, float* kept, std::int64_t kept_rows) {
  for_each_kept_chunk(kept, kept_rows, rows(), [&](const Chunk& chunk, float* kept_of_chunk) {
    gather_inputs(chunk);
    forward_chunk(chunk, to, kept_of_chunk);
  });
}

}  // namespace troupe::engine::ops
