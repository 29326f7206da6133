#include "engine/ops/cpu/lm_head/lm_head_pass.h"

#include <algorithm>
#include <numeric>

#include "engine/ops/cpu/gemm/packed_gemm.h"
#include "engine/ops/cpu/gemm/packing.h"
#include "engine/ops/cpu/lm_head/lm_head.h"

namespace troupe::engine::ops::cpu {

LmHeadPass::LmHeadPass(const Context& context, const LmHeadLimits& limits, const HeadInputs& in)
    : context_(context),
      limits_(limits),
      kernels_(context.kernels),
      for_logits_(in.precision == Precision::bf16 ? kernels_.gemm_bf16 : kernels_.gemm_f32_dot),
      for_gradients_(in.precision == Precision::bf16 ? kernels_.gemm_bf16 : kernels_.gemm_f32),
      of_{in.targets.host, in.columns},
      scale_(in.scale),
      vocabulary_(rows_of(in.weight)),
      blocks_(lm_head_blocks(vocabulary_)),
      ld_(std::min(lm_head_block, (vocabulary_ + 15) / 16 * 16) / 32 * 32 + 16),
      vocabulary_tile_(for_gradients_.mr),
      dlogits_(limits.blocks),
      kept_(limits.blocks) {
  while (lm_head_block % vocabulary_tile_ != 0) --vocabulary_tile_;
  unit_ = std::lcm(for_logits_.mr, for_gradients_.k_pack);
  for (std::size_t t = 0; t < of_.targets.size(); ++t) {
    if (of_.targets[t] != no_target) rows_.push_back(static_cast<std::int32_t>(t));
  }
  const auto add = [&](const Tensor& inputs, const Tensor& weight) {
    const std::int64_t width = width_of(weight);
    factors_.push_back({data(inputs), data(weight), width, for_logits_.k_groups(width),
                        LmHeadFactorMemory(limits_.blocks)});
  };
  add(in.hidden, in.weight);
  const std::int64_t k_groups = std::max<std::int64_t>(1, factors_[0].k_groups);
  span_ = std::max<std::int64_t>(1, lm_head_weight_elements / (k_groups * lm_head_columns)) *
          lm_head_columns;
  if (in.adapter != nullptr) add(in.adapter->down, in.adapter->up);
}

std::int64_t LmHeadPass::height_for(std::int64_t rows) const {
  // Overhead of a block, in rows: the time to read the weight.
  constexpr std::int64_t overhead = 4, max_rows = 112;
  const std::int64_t threads = context_.pool.threads();
  std::int64_t best = 0, minimum = 0;
  for (std::int64_t height = max_rows / unit_ * unit_; height > 0; height -= unit_) {
    const std::int64_t whole = rows / height, rest = rows % height,
                       rounds = (whole + threads - 1) / threads;
    const std::int64_t longest =
        rounds * (height + overhead) + (whole % threads == 0 && rest > 0 ? rest + overhead : 0);
    if (best == 0 || longest < minimum) {
      best = height;
      minimum = longest;
    }
  }
  return best;
}

void LmHeadPass::gather_inputs(const Chunk& chunk) {
  for (Factor& factor : factors_) {
    float* rows = factor.memory.gathered.need(chunk.rows * factor.width);
    for (std::int64_t i = 0; i < chunk.rows; ++i)
      std::copy_n(factor.inputs + token(chunk, i) * factor.width, factor.width,
                  rows + i * factor.width);
  }
}

void LmHeadPass::pack_inputs(const Chunk& chunk) {
  for (Factor& factor : factors_)
    cpu::pack_tiles(context_, for_logits_,
                    {factor.memory.gathered.data(), factor.width, chunk.rows, factor.width,
                     for_logits_.mr, false},
                    factor.memory.inputs_for_logits.need(factor.k_groups * chunk.rows));
}

const LmHeadPass::Weights& LmHeadPass::own_weights(const Block& block, int worker) {
  Weights& own = own_weights_[static_cast<std::size_t>(worker)];
  if (own.column == block.column) return own;
  const std::int64_t panel = for_logits_.nr, width = for_logits_.padded_n(lm_head_block);
  std::int64_t words = 0;
  for (const Factor& factor : factors_) words += factor.k_groups * width;
  float* to = context_.workspace.gemm(worker).need(words);
  own.column = block.column;
  for (std::size_t i = 0; i < factors_.size(); ++i) {
    const Factor& factor = factors_[i];
    own.of[i] = to;
    for (std::int64_t j = 0; j < block.columns; j += panel) {
      const float* from = factor.weight + (block.column + j) * factor.width;
      for_logits_.pack(
          {from, factor.width, std::min(panel, block.columns - j), factor.width, panel, false},
          to + j * factor.k_groups);
    }
    to += factor.k_groups * width;
  }
  return own;
}

void LmHeadPass::make_logits(const Block& block, const Weights& weights, float* z) const {
  for (std::size_t i = 0; i < factors_.size(); ++i) {
    const Factor& factor = factors_[i];
    for_logits_.gemm({block.rows, block.columns, factor.k_groups, for_logits_.mr,
                      factor.memory.inputs_for_logits.data() + block.row * factor.k_groups,
                      weights.of[i], z, ld_, i > 0});
  }
  for (std::int64_t i = 0; i < block.rows; ++i)
    scale_row(kernels_, z + i * ld_, block.columns, scale_);
}

void LmHeadPass::forward_block(const Chunk& chunk, const Block& block, const float* z,
                               const LmHeadScores& to) {
  const bool weighted = to.entropy != nullptr;
  for (std::int64_t i = 0; i < block.rows; ++i, z += ld_) {
    const std::int64_t row = block.row + i;
    const std::int32_t target = of_.targets[static_cast<std::size_t>(token(chunk, row))];
    const auto sum = static_cast<std::size_t>(row * blocks_ + block.column / lm_head_block);
    const RowBlock left{z, block.columns, block.column, of_.columns_of(token(chunk, row))};
    sums_[sum] = softmax_over(kernels_, left, scale_.inv_temperature, weighted);
    if (to.whole_lse != nullptr)
      whole_sums_[sum] =
          left.kept == nullptr && weighted
              ? sums_[sum]
              : kernels_.softmax_sums(z, block.columns, scale_.inv_temperature, true);
    if (target >= block.column && target < block.column + block.columns)
      target_logit_[static_cast<std::size_t>(row)] = z[target - block.column];
  }
}

void LmHeadPass::keep(const Chunk& chunk, const Block& block, const float* z, float* kept) const {
  for (std::int64_t i = 0; i < block.rows; i += unit_)
    kernels_.copy_lines(z + i * ld_, kept + offset_of_kept(chunk, block.row + i, block.column),
                        std::min(unit_, block.rows - i) * ld_);
}

void LmHeadPass::finish_rows(const Chunk& chunk, const LmHeadScores& to) const {
  context_.parallel_ranges(
      chunk.rows, 64 * blocks_, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int32_t t = token(chunk, i);
          const auto joined = [&](const std::vector<SoftmaxSums>& sums) {
            return TokenLogprob(join_blocks(std::span(sums).subspan(
                static_cast<std::size_t>(i * blocks_), static_cast<std::size_t>(blocks_))));
          };
          const TokenLogprob row = joined(sums_);
          if (of_.targets[static_cast<std::size_t>(t)] >= 0)
            to.logp[t] =
                row.logp(target_logit_[static_cast<std::size_t>(i)], scale_.inv_temperature);
          to.lse[t] = row.lse;
          if (to.entropy != nullptr) to.entropy[t] = row.entropy;
          if (to.whole_lse == nullptr) continue;
          const TokenLogprob whole = joined(whole_sums_);
          to.whole_lse[t] = whole.lse;
          to.whole_entropy[t] = whole.entropy;
        }
      });
}

void LmHeadPass::forward_chunk(const Chunk& chunk, const LmHeadScores& to, float* kept) {
  pack_inputs(chunk);
  sums_.resize(static_cast<std::size_t>(chunk.rows * blocks_));
  if (to.whole_lse != nullptr) whole_sums_.resize(sums_.size());
  target_logit_.resize(static_cast<std::size_t>(chunk.rows));
  own_weights_.assign(static_cast<std::size_t>(context_.pool.threads()), {});
  for_each_block(chunk, {0, vocabulary_}, [&](const Block& block, const Buffers& buffers) {
    make_logits(block, own_weights(block, buffers.worker), buffers.logits);
    forward_block(chunk, block, buffers.logits, to);
    if (kept != nullptr) keep(chunk, block, buffers.logits, kept);
  });
  finish_rows(chunk, to);
}

void LmHeadPass::forward(const LmHeadScores& to, float* kept, std::int64_t kept_rows) {
  for_each_kept_chunk(kept, kept_rows, rows(), [&](const Chunk& chunk, float* kept_of_chunk) {
    gather_inputs(chunk);
    forward_chunk(chunk, to, kept_of_chunk);
  });
}

float* LmHeadPass::dweight_of(std::size_t factor, const HeadGradients& to) {
  Tensor* const dweight = factor == 0 ? &to.dweight : &to.adapter->dup;
  return *dweight ? mutable_data(*dweight) : nullptr;
}

void LmHeadPass::pack_inputs_for_dweight(const Chunk& chunk, const HeadGradients& to) {
  dlogits_by_column_ = nullptr;
  for (std::size_t i = 0; i < factors_.size(); ++i) {
    if (dweight_of(i, to) == nullptr) continue;
    Factor& factor = factors_[i];
    dlogits_by_column_ =
        dlogits_.need(for_gradients_.k_groups(chunk.rows) * std::min(lm_head_columns, vocabulary_));
    cpu::pack_panels(
        context_, for_gradients_,
        {factor.memory.gathered.data(), factor.width, factor.width, chunk.rows, panel_nr, true},
        factor.memory.inputs_for_dweight.need(for_gradients_.k_groups(chunk.rows) *
                                              padded_columns(factor.width)));
  }
}

LmHeadPass::Weights LmHeadPass::pack_weights(const VocabRange& group) {
  Weights weights{group.begin, {}};
  for (std::size_t i = 0; i < factors_.size(); ++i) {
    Factor& factor = factors_[i];
    float* to = factor.memory.weight_for_logits.need(factor.k_groups *
                                                     for_logits_.padded_n(lm_head_columns));
    cpu::pack_panels(context_, for_logits_,
                     {factor.weight + group.begin * factor.width, factor.width, group.count,
                      factor.width, for_logits_.nr, false},
                     to);
    weights.of[i] = to;
  }
  return weights;
}

// Packs a large span at a time, so that no line to be written is in another core's cache: such
// lines take longer to write.
void LmHeadPass::pack_weights_for_dinputs(const VocabRange& group) {
  const std::int64_t span = group.begin / span_ * span_;
  if (packed_for_dinputs_ == span) return;
  packed_for_dinputs_ = span;
  const std::int64_t count = std::min(span_, vocabulary_ - packed_for_dinputs_);
  for (Factor& factor : factors_) {
    float* to = factor.memory.weight_for_dinputs.need(for_gradients_.k_groups(count) *
                                                      padded_columns(factor.width));
    for (std::int64_t k = 0; k < count; k += lm_head_columns) {
      const float* from = factor.weight + (packed_for_dinputs_ + k) * factor.width;
      cpu::pack_panels(
          context_, for_gradients_,
          {from, factor.width, factor.width, std::min(lm_head_columns, count - k), panel_nr, true},
          to + for_gradients_.k_groups(k) * padded_columns(factor.width));
    }
  }
}

namespace {

/// Assigns the gradients z [columns] of a row's logits, which may be block.logits: 0 for columns
/// that are not kept.
void masked_dlogits(const Kernels& kernels, const RowBlock& block, const LmHeadRow& from,
                    float* z) {
  float kept[lm_head_block];
  const std::int64_t count = block.gather(kept);
  kernels.lm_head_dlogits(kept, kept, count, from);
  block.scatter(kept, z);
}

}  // namespace

void LmHeadPass::logits_backward(const Chunk& chunk, const Block& block, const LmHeadUpstream& up,
                                 const float* kept, float* z) const {
  for (std::int64_t i = 0; i < block.rows; ++i, z += ld_) {
    const float* logits =
        kept == nullptr ? z : kept + offset_of_kept(chunk, block.row + i, block.column);
    const std::int32_t t = token(chunk, block.row + i),
                       target = of_.targets[static_cast<std::size_t>(t)];
    const bool here = target >= block.column && target < block.column + block.columns;
    const LmHeadRow from{.inv_temperature = scale_.inv_temperature,
                         .lse = up.lse[t],
                         .dlogp = up.dlogp[t],
                         .dentropy = up.dentropy == nullptr ? 0 : up.dentropy[t],
                         .entropy = up.dentropy == nullptr ? 0 : up.entropy[t],
                         .logit_scale = scale_.logit_scale,
                         .inverse_cap = scale_.softcap == 0 ? 0 : 1 / scale_.softcap};
    const float own =
        here ? scale_.inv_temperature * up.dlogp[t] * from.derivative(logits[target - block.column])
             : 0;
    const RowBlock left{logits, block.columns, block.column, of_.columns_of(t)};
    if (left.kept == nullptr)
      kernels_.lm_head_dlogits(logits, z, block.columns, from);
    else
      masked_dlogits(kernels_, left, from, z);
    if (here) z[target - block.column] += own;
  }
}

void LmHeadPass::pack_dlogits(const Chunk& chunk, const Block& block, const float* z) const {
  const std::int64_t chunk_steps = for_gradients_.k_groups(chunk.rows);
  for (std::int64_t v = 0; v < block.columns; v += vocabulary_tile_) {
    const std::int64_t tall = std::min(vocabulary_tile_, block.columns - v);
    for_gradients_.pack(
        {z + v, ld_, tall, block.rows, tall, true},
        dlogits_by_column_ + v * chunk_steps + block.row / for_gradients_.k_pack * tall);
  }
}

void LmHeadPass::add_to_inputs(const Block& block, const Buffers& buffers) const {
  const std::int64_t steps = for_gradients_.k_groups(block.columns),
                     rows = for_gradients_.mr_for(block.rows);
  for (std::int64_t i = 0; i < block.rows; i += rows) {
    const std::int64_t tall = std::min(rows, block.rows - i);
    for_gradients_.pack({buffers.logits + i * ld_, ld_, tall, block.columns, tall, false},
                        buffers.tiles + i * steps);
  }
  for (const Factor& factor : factors_) {
    const float* below =
        factor.memory.weight_for_dinputs.data() +
        for_gradients_.k_groups(block.column - packed_for_dinputs_) * padded_columns(factor.width);
    for_gradients_.gemm({block.rows, factor.width, steps, rows, buffers.tiles, below,
                         factor.memory.dinputs.data() + block.row * factor.width, factor.width,
                         block.column > 0});
  }
}

void LmHeadPass::add_to_weights(const Chunk& chunk, const VocabRange& group,
                                const HeadGradients& to) {
  std::vector<PackedGemm> products;
  for (std::size_t i = 0; i < factors_.size(); ++i) {
    const std::int64_t width = factors_[i].width;
    if (float* dweight = dweight_of(i, to); dweight != nullptr)
      products.push_back({group.count, width, for_gradients_.k_groups(chunk.rows), vocabulary_tile_,
                          dlogits_by_column_, factors_[i].memory.inputs_for_dweight.data(),
                          dweight + group.begin * width, width,
                          i > 0 || to.accumulate || chunk.begin > 0});
  }
  packed_gemm(context_, for_gradients_, products);
}

void LmHeadPass::scatter_dinputs(const Chunk& chunk, const Factor& factor, Tensor& dinputs) const {
  for (std::int64_t i = 0; i < chunk.rows; ++i)
    std::copy_n(factor.memory.dinputs.data() + i * factor.width, factor.width,
                mutable_data(dinputs) + token(chunk, i) * factor.width);
}

void LmHeadPass::backward_chunk(const Chunk& chunk, const LmHeadUpstream& up, const float* kept,
                                const HeadGradients& to) {
  pack_inputs_for_dweight(chunk, to);
  for (Factor& factor : factors_) factor.memory.dinputs.need(chunk.rows * factor.width);
  for_each_group([&](const VocabRange& group) {
    const Weights weights = kept == nullptr ? pack_weights(group) : Weights();
    pack_weights_for_dinputs(group);
    for_each_block(chunk, group, [&](const Block& block, const Buffers& buffers) {
      if (kept == nullptr) make_logits(block, weights, buffers.logits);
      logits_backward(chunk, block, up, kept, buffers.logits);
      if (dlogits_by_column_ != nullptr) pack_dlogits(chunk, block, buffers.logits);
      add_to_inputs(block, buffers);
    });
    add_to_weights(chunk, group, to);
  });
  scatter_dinputs(chunk, factors_[0], to.dhidden);
  if (to.adapter != nullptr) scatter_dinputs(chunk, factors_[1], to.adapter->ddown);
}

void LmHeadPass::backward(const LmHeadUpstream& up, const float* kept, std::int64_t kept_rows,
                          const HeadGradients& to) {
  for_each_kept_chunk(kept, kept_rows, limits_.max_logits / lm_head_columns,
                      [&](const Chunk& chunk, const float* kept_of_chunk) {
                        gather_inputs(chunk);
                        if (kept_of_chunk == nullptr) pack_inputs(chunk);
                        backward_chunk(chunk, up, kept_of_chunk, to);
                      });
}

void LmHeadPass::forward_backward(const LmHeadScores& scores, const LmHeadUpstream& up,
                                  const HeadGradients& to) {
  for_each_chunk(0, rows(), lm_head_rows(vocabulary_, limits_.max_logits), [&](const Chunk& chunk) {
    float* kept = kept_.need(kept_logits(chunk.rows));
    gather_inputs(chunk);
    forward_chunk(chunk, scores, kept);
    backward_chunk(chunk, up, kept, to);
  });
}

}  // namespace troupe::engine::ops::cpu
