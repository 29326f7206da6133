#include "engine/ops/cpu/fast_head.h"

#include <algorithm>
#include <cmath>

namespace troupe::engine::ops {
namespace {

constexpr std::int64_t forward_rows = 8192;
constexpr std::int64_t block_rows = 112, block_logits = block_rows * head_block;  // at most

std::int64_t blocks_of(std::int64_t vocabulary) { return (vocabulary + head_block - 1) / head_block; }

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
      blocks_(blocks_of(vocabulary_)),
      vocabulary_tile_(with_.rows) {
  check_head(hidden, weight, targets);
  check_head_adapter(adapter, rows_of(hidden), vocabulary_);
  while (head_block % vocabulary_tile_ != 0) --vocabulary_tile_;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (targets[t] != no_target) rows_.push_back(static_cast<std::int32_t>(t));
  }
  const auto add = [&](const Tensor& inputs, const Tensor& factor, FastDevice::HeadScratch& scratch) {
    const std::int64_t width = width_of(factor);
    factors_.push_back({in(inputs), in(factor), width, with_.steps(width), scratch.gathered, scratch.left, scratch.right});
  };
  add(hidden, weight, device.head_scratch_[0]);
  if (adapter != nullptr) add(adapter->down, adapter->up, device.head_scratch_[1]);
}

void HeadPass::pack_inputs(const Chunk& chunk, Factor& factor) {
  float* rows = factor.gathered.need(chunk.rows * factor.width);
  for (std::int64_t i = 0; i < chunk.rows; ++i)
    std::copy_n(factor.inputs + token(chunk, i) * factor.width, factor.width, rows + i * factor.width);
  if (in_pairs())
    device_.pack_tiles(with_, {rows, factor.width, chunk.rows, factor.width, with_.rows, false},
                       factor.left.need(factor.steps * chunk.rows));
}

void HeadPass::pack_weight(Factor& factor) {
  if (!in_pairs()) return;
  float* to = factor.right.need(factor.steps * panels_width(vocabulary_));
  device_.pack_panels(with_, {factor.weight, factor.width, vocabulary_, factor.width, panel_columns, false}, to);
}

template <class Visit>
void HeadPass::for_each_block(const Chunk& chunk, Visit visit) {
  // A whole number of tiles and of words, so that the transposed gradients of a block are whole words of their tiles.
  const std::int64_t height = with_.rows * (block_rows / with_.rows / 2 * 2), down = (chunk.rows + height - 1) / height;
  device_.spread(down * blocks_, chunk.rows * vocabulary_ * factors_[0].width, [&](std::int64_t item, int worker) {
    const std::int64_t row = item % down * height, column = item / down * head_block;
    const Block block{row, std::min(height, chunk.rows - row), column, std::min(head_block, vocabulary_ - column)};
    visit(block, device_.score_scratch_[static_cast<std::size_t>(worker)].need(block_logits), device_.scratch(worker));
  });
}

void HeadPass::make_logits(const Chunk& chunk, const Block& block, const float* kept, float* z, float* memory) const {
  if (kept != nullptr) {
    for (std::int64_t i = 0; i < block.rows; ++i)
      std::copy_n(kept + (chunk.begin + block.row + i) * vocabulary_ + block.column, block.columns, z + i * head_block);
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
    if (kept != nullptr) std::copy_n(z, block.columns, kept + (chunk.begin + row) * vocabulary_ + block.column);
  }
}

void HeadPass::finish_rows(const Chunk& chunk, float* logp, float* lse, float* entropy) const {
  for (std::int64_t i = 0; i < chunk.rows; ++i) {
    const std::int32_t t = token(chunk, i);
    const RowResult row(joined(std::span(sums_).subspan(static_cast<std::size_t>(i * blocks_), static_cast<std::size_t>(blocks_))));
    if (targets_[static_cast<std::size_t>(t)] >= 0) logp[t] = row.logp(target_logit_[static_cast<std::size_t>(i)], scale_.inv_temperature);
    lse[t] = row.lse;
    if (entropy != nullptr) entropy[t] = row.entropy;
  }
}

void HeadPass::forward(float* logp, float* lse, float* entropy, float* kept) {
  if (rows() == 0) return;
  for (Factor& factor : factors_) pack_weight(factor);
  for (std::int64_t begin = 0; begin < rows(); begin += forward_rows) {
    const Chunk chunk{begin, std::min(forward_rows, rows() - begin)};
    for (Factor& factor : factors_) pack_inputs(chunk, factor);
    sums_.resize(static_cast<std::size_t>(chunk.rows * blocks_));
    target_logit_.resize(static_cast<std::size_t>(chunk.rows));
    for_each_block(chunk, [&](const Block& block, float* z, float* memory) {
      make_logits(chunk, block, nullptr, z, memory);
      forward_block(chunk, block, z, entropy != nullptr, kept);
    });
    finish_rows(chunk, logp, lse, entropy);
  }
}

void HeadPass::backward_block(const Chunk& chunk, const Block& block, const HeadUpstream& up, float* z) {
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
  const std::int64_t steps = with_.steps(vocabulary_), chunk_steps = with_.steps(chunk.rows);
  for (std::int64_t i = 0; i < block.rows; i += with_.rows) {
    const std::int64_t tall = std::min(with_.rows, block.rows - i);
    with_.pack({z + i * head_block, head_block, tall, block.columns, tall, false},
               by_row_ + (block.row + i) * steps + block.column / with_.step * tall);
  }
  for (std::int64_t v = 0; v < block.columns; v += vocabulary_tile_) {
    const std::int64_t tall = std::min(vocabulary_tile_, block.columns - v);
    with_.pack({z + v, head_block, tall, block.rows, tall, true},
               by_column_ + (block.column + v) * chunk_steps + block.row / with_.step * tall);
  }
}

void HeadPass::slopes(const Chunk& chunk, Factor& factor, Tensor& dinputs, Tensor& dweight) {
  const std::int64_t width = factor.width, steps = with_.steps(vocabulary_), chunk_steps = with_.steps(chunk.rows);
  float* right = device_.right_.need(std::max(steps, chunk_steps) * panels_width(width));
  device_.pack_panels(with_, {factor.weight, width, width, vocabulary_, panel_columns, true}, right);
  float* below = device_.below_.need(chunk.rows * width);
  device_.multiply(with_, {chunk.rows, width, steps, with_.rows, by_row_, right, below, width, false});
  for (std::int64_t i = 0; i < chunk.rows; ++i) std::copy_n(below + i * width, width, out(dinputs) + token(chunk, i) * width);
  if (!dweight) return;
  const float* inputs = factor.gathered.at();
  device_.pack_panels(with_, {inputs, width, width, chunk.rows, panel_columns, true}, right);
  device_.multiply(with_, {vocabulary_, width, chunk_steps, vocabulary_tile_, by_column_, right, out(dweight), width, true});
}

void HeadPass::backward(const HeadUpstream& up, const float* kept, Tensor& dhidden, Tensor& dweight, HeadAdapter* adapter) {
  if (rows() == 0) return;
  if (kept == nullptr) {
    for (Factor& factor : factors_) pack_weight(factor);
  }
  const std::int64_t most = std::clamp<std::int64_t>(device_.head_logits_ / vocabulary_, 32, forward_rows);
  const std::int64_t chunks = (rows() + most - 1) / most, even = (rows() + chunks - 1) / chunks;
  for (std::int64_t begin = 0; begin < rows(); begin += even) {
    const Chunk chunk{begin, std::min(even, rows() - begin)};
    for (Factor& factor : factors_) pack_inputs(chunk, factor);
    by_row_ = device_.left_.need(with_.steps(vocabulary_) * chunk.rows);
    by_column_ = device_.by_column_.need(with_.steps(chunk.rows) * vocabulary_);
    for_each_block(chunk, [&](const Block& block, float* z, float* memory) {
      make_logits(chunk, block, kept, z, memory);
      backward_block(chunk, block, up, z);
    });
    slopes(chunk, factors_[0], dhidden, dweight);
    if (adapter != nullptr) slopes(chunk, factors_[1], adapter->ddown, adapter->dup);
  }
}

void FastDevice::head(const Tensor& hidden, const Tensor& weight, std::span<const std::int32_t> targets, const HeadScale& scale,
                      Precision precision, Tensor& logp, Tensor& lse, Tensor* entropy, const HeadAdapter* adapter, Tensor* kept) {
  const auto count = static_cast<std::int64_t>(targets.size());
  check(logp.count() == count && lse.count() == count && (entropy == nullptr || entropy->count() == count), "head: logp, lse, entropy [T]");
  HeadPass pass(*this, hidden, weight, targets, scale, precision, adapter);
  std::fill_n(out(logp), count, 0.0F);
  std::fill_n(out(lse), count, 0.0F);
  if (entropy != nullptr) std::fill_n(out(*entropy), count, 0.0F);
  if (kept != nullptr)
    *kept = pass.rows() * rows_of(weight) <= most_kept_logits ? empty({pass.rows(), rows_of(weight)}, DType::f32) : Tensor();
  pass.forward(out(logp), out(lse), entropy == nullptr ? nullptr : out(*entropy), kept != nullptr && *kept ? out(*kept) : nullptr);
}

void FastDevice::head_backward(const Tensor& hidden, const Tensor& weight, std::span<const std::int32_t> targets, const HeadScale& scale,
                               Precision precision, const Tensor& lse, const Tensor& dlogp, const Tensor* dentropy, const Tensor* entropy,
                               Tensor& dhidden, Tensor& dweight, HeadAdapter* adapter, const Tensor* kept) {
  const auto count = static_cast<std::int64_t>(targets.size());
  check(lse.count() == count && dlogp.count() == count, "head_backward: lse, dlogp [T]");
  check(dhidden.count() == hidden.count() && (!dweight || dweight.count() == weight.count()), "head_backward: gradients");
  check(dentropy == nullptr || (entropy != nullptr && entropy->count() == count && dentropy->count() == count),
        "head_backward: entropy [T]");
  HeadPass pass(*this, hidden, weight, targets, scale, precision, adapter);
  const bool has_kept = kept != nullptr && *kept;
  check(!has_kept || kept->count() == pass.rows() * rows_of(weight), "head_backward: kept logits of another call");
  fill(dhidden, 0);
  if (adapter != nullptr) fill(adapter->ddown, 0);
  const HeadUpstream up{in(lse), in(dlogp), dentropy == nullptr ? nullptr : in(*dentropy), dentropy == nullptr ? nullptr : in(*entropy)};
  pass.backward(up, has_kept ? in(*kept) : nullptr, dhidden, dweight, adapter);
}

void FastDevice::scale_row(float* logits, std::int64_t n, const HeadScale& scale) const {
  if (scale.softcap != 0) return kernels_.cap(logits, n, scale.logit_scale, scale.softcap);
  if (scale.logit_scale != 1) kernels_.scale(logits, scale.logit_scale, n);
}

void FastDevice::scale_logits(Tensor& logits, const HeadScale& scale) {
  if (!scale.changes_logits()) return;
  float* values = out(logits);
  const std::int64_t vocabulary = width_of(logits);
  share(rows_of(logits), 8 * vocabulary, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t) scale_row(values + t * vocabulary, vocabulary, scale);
  });
}

void FastDevice::token_logprob(const Tensor& logits, std::span<const std::int32_t> targets, float inv_temperature, Tensor& logp,
                               Tensor& lse) {
  const std::int64_t vocabulary = width_of(logits), count = rows_of(logits), blocks = blocks_of(vocabulary);
  check_targets(targets, count, vocabulary);
  check(logp.count() == count && lse.count() == count, "token_logprob: logp, lse [M]");
  const float* values = in(logits);
  std::vector<SoftmaxSums> sums(static_cast<std::size_t>(count * blocks));
  share(count * blocks, 8 * head_block, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t column = i % blocks * head_block;
      sums[static_cast<std::size_t>(i)] = kernels_.softmax_sums(values + i / blocks * vocabulary + column,
                                                                std::min(head_block, vocabulary - column), inv_temperature, false);
    }
  });
  float *logp_at = out(logp), *lse_at = out(lse);
  for (std::int64_t t = 0; t < count; ++t) {
    const std::int32_t target = targets[static_cast<std::size_t>(t)];
    const RowResult row(joined(std::span(sums).subspan(static_cast<std::size_t>(t * blocks), static_cast<std::size_t>(blocks))));
    lse_at[t] = row.lse;
    logp_at[t] = target < 0 ? 0 : row.logp(values[t * vocabulary + target], inv_temperature);
  }
}

}  // namespace troupe::engine::ops
