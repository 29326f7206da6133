#include "engine/ops/cpu/head_pass.h"

#include <algorithm>
#include <cmath>

namespace troupe::engine::ops {
namespace {

constexpr std::int64_t forward_rows = 8192;                                       // of a chunk, at most
constexpr std::int64_t block_rows = 112, block_logits = block_rows * head_block;  // at most

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

HeadPass::HeadPass(FastDevice& device, const Tensor& hidden, const Tensor& weight, std::span<const std::int32_t> targets,
                   const HeadScale& scale, Precision precision, const HeadAdapter* adapter)
    : device_(device),
      kernels_(device.kernels_),
      with_(precision == Precision::bf16 ? device.kernels_.pairs : device.kernels_.singles),
      targets_(targets),
      scale_(scale),
      vocabulary_(rows_of(weight)),
      blocks_(head_blocks(vocabulary_)),
      vocabulary_tile_(with_.rows) {
  check_head(hidden, weight, targets);
  check_head_adapter(adapter, rows_of(hidden), vocabulary_);
  while (head_block % vocabulary_tile_ != 0) --vocabulary_tile_;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (targets[t] != no_target) rows_.push_back(static_cast<std::int32_t>(t));
  }
  const auto add = [&](const Tensor& inputs, const Tensor& factor, FastDevice::HeadScratch& scratch) {
    const std::int64_t width = width_of(factor);
    factors_.push_back({in(inputs), in(factor), width, with_.steps(width), scratch.gathered, scratch.left, scratch.right, scratch.below,
                        scratch.across, scratch.slopes});
  };
  add(hidden, weight, device.head_scratch_[0]);
  if (adapter != nullptr) add(adapter->down, adapter->up, device.head_scratch_[1]);
}

void HeadPass::gather_inputs(const Chunk& chunk) {
  for (Factor& factor : factors_) {
    float* rows = factor.gathered.need(chunk.rows * factor.width);
    for (std::int64_t i = 0; i < chunk.rows; ++i)
      std::copy_n(factor.inputs + token(chunk, i) * factor.width, factor.width, rows + i * factor.width);
  }
}

void HeadPass::pack_inputs(const Chunk& chunk) {
  if (!in_pairs()) return;
  for (Factor& factor : factors_)
    device_.pack_tiles(with_, {factor.gathered.at(), factor.width, chunk.rows, factor.width, with_.rows, false},
                       factor.left.need(factor.steps * chunk.rows));
}

void HeadPass::pack_inputs_across(const Chunk& chunk) {
  for (Factor& factor : factors_)
    device_.pack_panels(with_, {factor.gathered.at(), factor.width, factor.width, chunk.rows, panel_columns, true},
                        factor.across.need(with_.steps(chunk.rows) * panels_width(factor.width)));
}

void HeadPass::pack_weights() {
  if (!in_pairs()) return;
  for (Factor& factor : factors_)
    device_.pack_panels(with_, {factor.weight, factor.width, vocabulary_, factor.width, panel_columns, false},
                        factor.right.need(factor.steps * panels_width(vocabulary_)));
}

void HeadPass::pack_weights_below() {
  for (Factor& factor : factors_) {
    float* to = factor.below.need(with_.steps(vocabulary_) * panels_width(factor.width));
    for_each_group([&](const Columns& group) {
      device_.pack_panels(with_, {factor.weight + group.begin * factor.width, factor.width, factor.width, group.count, panel_columns, true},
                          to + with_.steps(group.begin) * panels_width(factor.width));
    });
  }
}

template <class Visit>
void HeadPass::for_each_group(Visit visit) const {
  for (std::int64_t begin = 0; begin < vocabulary_; begin += head_columns)
    visit(Columns{begin, std::min(head_columns, vocabulary_ - begin)});
}

template <class Visit>
void HeadPass::for_each_chunk(std::int64_t most_rows, Visit visit) {
  const std::int64_t most = std::clamp<std::int64_t>(most_rows, 32, forward_rows);
  const std::int64_t chunks = (rows() + most - 1) / most, even = (rows() + chunks - 1) / chunks;
  for (std::int64_t begin = 0; begin < rows(); begin += even) visit(Chunk{begin, std::min(even, rows() - begin)});
}

template <class Visit>
void HeadPass::for_each_block(const Chunk& chunk, const Columns& columns, Visit visit) {
  // A whole number of tiles and of words, so that the transposed gradients of a block are whole words of their tiles.
  const std::int64_t height = with_.rows * (block_rows / with_.rows / 2 * 2), down = (chunk.rows + height - 1) / height;
  device_.spread(down * head_blocks(columns.count), chunk.rows * columns.count * factors_[0].width, [&](std::int64_t item, int worker) {
    const std::int64_t row = item % down * height, column = columns.begin + item / down * head_block;
    const Block block{row, std::min(height, chunk.rows - row), column, std::min(head_block, columns.begin + columns.count - column)};
    visit(block, device_.score_scratch_[static_cast<std::size_t>(worker)].need(block_logits), device_.scratch(worker));
  });
}

void HeadPass::make_logits(const Block& block, const float* kept, float* z, float* memory) const {
  if (kept != nullptr) {
    for (std::int64_t i = 0; i < block.rows; ++i)
      std::copy_n(kept + (block.row + i) * vocabulary_ + block.column, block.columns, z + i * head_block);
    return;
  }
  for (const Factor& factor : factors_) {
    if (!in_pairs()) {
      kernels_.dot_product({block.rows, block.columns, factor.width, factor.gathered.at() + block.row * factor.width, factor.width, 1,
                            factor.weight + block.column * factor.width, factor.width, z, head_block, &factor != factors_.data()},
                           memory);
      continue;
    }
    const float *left = factor.left.at() + block.row * factor.steps, *right = factor.right.at() + block.column * factor.steps;
    with_.product({block.rows, block.columns, factor.steps, with_.rows, left, right, z, head_block, &factor != factors_.data()});
  }
  for (std::int64_t i = 0; i < block.rows; ++i) device_.scale_row(z + i * head_block, block.columns, scale_);
}

void HeadPass::forward_block(const Chunk& chunk, const Block& block, float* z, bool weighted, float* kept) {
  for (std::int64_t i = 0; i < block.rows; ++i, z += head_block) {
    const std::int64_t row = block.row + i;
    const std::int32_t target = targets_[static_cast<std::size_t>(token(chunk, row))];
    sums_[static_cast<std::size_t>(row * blocks_ + block.column / head_block)] =
        kernels_.softmax_sums(z, block.columns, scale_.inv_temperature, weighted);
    if (target >= block.column && target < block.column + block.columns)
      target_logit_[static_cast<std::size_t>(row)] = z[target - block.column];
    if (kept != nullptr) std::copy_n(z, block.columns, kept + row * vocabulary_ + block.column);
  }
}

void HeadPass::finish_rows(const Chunk& chunk, const HeadScores& to) const {
  for (std::int64_t i = 0; i < chunk.rows; ++i) {
    const std::int32_t t = token(chunk, i);
    const RowResult row(joined(std::span(sums_).subspan(static_cast<std::size_t>(i * blocks_), static_cast<std::size_t>(blocks_))));
    if (targets_[static_cast<std::size_t>(t)] >= 0)
      to.logp[t] = row.logp(target_logit_[static_cast<std::size_t>(i)], scale_.inv_temperature);
    to.lse[t] = row.lse;
    if (to.entropy != nullptr) to.entropy[t] = row.entropy;
  }
}

void HeadPass::forward_chunk(const Chunk& chunk, const HeadScores& to, float* kept) {
  pack_inputs(chunk);
  sums_.resize(static_cast<std::size_t>(chunk.rows * blocks_));
  target_logit_.resize(static_cast<std::size_t>(chunk.rows));
  for_each_block(chunk, {0, vocabulary_}, [&](const Block& block, float* z, float* memory) {
    make_logits(block, nullptr, z, memory);
    forward_block(chunk, block, z, to.entropy != nullptr, kept);
  });
  finish_rows(chunk, to);
}

void HeadPass::forward(const HeadScores& to, float* kept) {
  if (rows() == 0) return;
  pack_weights();
  for (std::int64_t begin = 0; begin < rows(); begin += forward_rows) {
    const Chunk chunk{begin, std::min(forward_rows, rows() - begin)};
    gather_inputs(chunk);
    forward_chunk(chunk, to, kept == nullptr ? nullptr : kept + begin * vocabulary_);
  }
}

void HeadPass::backward_block(const Chunk& chunk, const Columns& group, const Block& block, const HeadUpstream& up, float* z) {
  for (std::int64_t i = 0; i < block.rows; ++i) {
    const std::int32_t t = token(chunk, block.row + i), target = targets_[static_cast<std::size_t>(t)];
    float* row = z + i * head_block;
    const bool here = target >= block.column && target < block.column + block.columns;
    const HeadRow from{scale_.inv_temperature,
                       up.lse[t],
                       up.dlogp[t],
                       up.dentropy == nullptr ? 0 : up.dentropy[t],
                       up.dentropy == nullptr ? 0 : up.entropy[t],
                       scale_.logit_scale,
                       scale_.softcap == 0 ? 0 : 1 / scale_.softcap};
    const float own = here ? scale_.inv_temperature * up.dlogp[t] * from.slope(row[target - block.column]) : 0;
    kernels_.head_dlogits(row, block.columns, from);
    if (here) row[target - block.column] += own;
  }
  const std::int64_t steps = with_.steps(group.count), chunk_steps = with_.steps(chunk.rows), column = block.column - group.begin;
  for (std::int64_t i = 0; i < block.rows; i += with_.rows) {
    const std::int64_t tall = std::min(with_.rows, block.rows - i);
    with_.pack({z + i * head_block, head_block, tall, block.columns, tall, false},
               by_row_ + (block.row + i) * steps + column / with_.step * tall);
  }
  for (std::int64_t v = 0; v < block.columns; v += vocabulary_tile_) {
    const std::int64_t tall = std::min(vocabulary_tile_, block.columns - v);
    with_.pack({z + v, head_block, tall, block.rows, tall, true}, by_column_ + (column + v) * chunk_steps + block.row / with_.step * tall);
  }
}

void HeadPass::slopes(const Chunk& chunk, const Columns& group, Factor& factor, Tensor& dweight) {
  const std::int64_t width = factor.width, steps = with_.steps(group.count), chunk_steps = with_.steps(chunk.rows);
  const float* below = factor.below.at() + with_.steps(group.begin) * panels_width(width);
  device_.multiply(with_,
                   {chunk.rows, width, steps, with_.rows, by_row_, below, factor.slopes.need(chunk.rows * width), width, group.begin > 0});
  if (!dweight) return;
  device_.multiply(with_, {group.count, width, chunk_steps, vocabulary_tile_, by_column_, factor.across.at(),
                           out(dweight) + group.begin * width, width, true});
}

void HeadPass::scatter_slopes(const Chunk& chunk, const Factor& factor, Tensor& dinputs) const {
  for (std::int64_t i = 0; i < chunk.rows; ++i)
    std::copy_n(factor.slopes.at() + i * factor.width, factor.width, out(dinputs) + token(chunk, i) * factor.width);
}

void HeadPass::backward_chunk(const Chunk& chunk, const HeadUpstream& up, const float* kept, const HeadGradients& to) {
  const std::int64_t widest = std::min(head_columns, vocabulary_);
  by_row_ = device_.left_.need(with_.steps(widest) * chunk.rows);
  by_column_ = device_.by_column_.need(with_.steps(chunk.rows) * widest);
  Tensor* const dweights[] = {&to.dweight, to.adapter == nullptr ? nullptr : &to.adapter->dup};
  pack_inputs_across(chunk);
  for_each_group([&](const Columns& group) {
    for_each_block(chunk, group, [&](const Block& block, float* z, float* memory) {
      make_logits(block, kept, z, memory);
      backward_block(chunk, group, block, up, z);
    });
    for (std::size_t i = 0; i < factors_.size(); ++i) slopes(chunk, group, factors_[i], *dweights[i]);
  });
  scatter_slopes(chunk, factors_[0], to.dhidden);
  if (to.adapter != nullptr) scatter_slopes(chunk, factors_[1], to.adapter->ddown);
}

void HeadPass::backward(const HeadUpstream& up, const float* kept, const HeadGradients& to) {
  if (rows() == 0) return;
  if (kept == nullptr) pack_weights();
  pack_weights_below();
  for_each_chunk(device_.head_logits_ / head_columns, [&](const Chunk& chunk) {
    gather_inputs(chunk);
    if (kept == nullptr) pack_inputs(chunk);
    backward_chunk(chunk, up, kept == nullptr ? nullptr : kept + chunk.begin * vocabulary_, to);
  });
}

void HeadPass::through(const HeadScores& scores, const HeadUpstream& up, const HeadGradients& to) {
  if (rows() == 0) return;
  pack_weights();
  pack_weights_below();
  for_each_chunk(head_rows(vocabulary_, device_.head_logits_), [&](const Chunk& chunk) {
    float* kept = device_.kept_.need(chunk.rows * vocabulary_);
    gather_inputs(chunk);
    forward_chunk(chunk, scores, kept);
    backward_chunk(chunk, up, kept, to);
  });
}

}  // namespace troupe::engine::ops
