// The way back through the vocabulary head: gradients of logits, group of columns by group, and the
// products that they are the left operand of.
#include <algorithm>

#include "engine/ops/cpu/head_pass.h"

namespace troupe::engine::ops {

float* HeadPass::dweight_of(std::size_t factor, const HeadGradients& to) {
  Tensor* const dweight = factor == 0 ? &to.dweight : &to.adapter->dup;
  return *dweight ? out(*dweight) : nullptr;
}

void HeadPass::pack_inputs_across(const Chunk& chunk, const HeadGradients& to) {
  by_column_ = nullptr;
  for (std::size_t i = 0; i < factors_.size(); ++i) {
    if (dweight_of(i, to) == nullptr) continue;
    const Factor& factor = factors_[i];
    by_column_ =
        device_.by_column_.need(with_.steps(chunk.rows) * std::min(head_columns, vocabulary_));
    device_.pack_panels(
        with_,
        {factor.scratch.gathered.at(), factor.width, factor.width, chunk.rows, panel_columns, true},
        factor.scratch.across.need(with_.steps(chunk.rows) * panels_width(factor.width)));
  }
}

HeadPass::Weights HeadPass::pack_weights(const Columns& group) {
  Weights weights{group.begin, {}};
  for (std::size_t i = 0; i < factors_.size(); ++i) {
    const Factor& factor = factors_[i];
    float* to = factor.scratch.right.need(factor.steps * for_logits_.width(head_columns));
    device_.pack_panels(for_logits_,
                        {factor.weight + group.begin * factor.width, factor.width, group.count,
                         factor.width, for_logits_.columns, false},
                        to);
    weights.of[i] = to;
  }
  return weights;
}

// So many at a time that no thread finds in its cache what the other has read: such lines take
// longer to write.
void HeadPass::need_weights_below(const Columns& group) {
  const std::int64_t span = group.begin / span_ * span_;
  if (packed_below_ == span) return;
  packed_below_ = span;
  const std::int64_t count = std::min(span_, vocabulary_ - packed_below_);
  for (const Factor& factor : factors_) {
    float* to = factor.scratch.below.need(with_.steps(count) * panels_width(factor.width));
    for (std::int64_t k = 0; k < count; k += head_columns) {
      const float* from = factor.weight + (packed_below_ + k) * factor.width;
      device_.pack_panels(with_,
                          {from, factor.width, factor.width, std::min(head_columns, count - k),
                           panel_columns, true},
                          to + with_.steps(k) * panels_width(factor.width));
    }
  }
}

void HeadPass::differentiate(const Chunk& chunk, const Block& block, const HeadUpstream& up,
                             const float* kept, float* z) const {
  for (std::int64_t i = 0; i < block.rows; ++i, z += pitch_) {
    const float* logits = kept == nullptr ? z : kept + place(chunk, block.row + i, block.column);
    const std::int32_t t = token(chunk, block.row + i),
                       target = targets_[static_cast<std::size_t>(t)];
    const bool here = target >= block.column && target < block.column + block.columns;
    const HeadRow from{scale_.inv_temperature,
                       up.lse[t],
                       up.dlogp[t],
                       up.dentropy == nullptr ? 0 : up.dentropy[t],
                       up.dentropy == nullptr ? 0 : up.entropy[t],
                       scale_.logit_scale,
                       scale_.softcap == 0 ? 0 : 1 / scale_.softcap};
    const float own =
        here ? scale_.inv_temperature * up.dlogp[t] * from.slope(logits[target - block.column]) : 0;
    kernels_.head_dlogits(logits, z, block.columns, from);
    if (here) z[target - block.column] += own;
  }
}

void HeadPass::pack_for_weights(const Chunk& chunk, const Block& block, const float* z) const {
  const std::int64_t chunk_steps = with_.steps(chunk.rows);
  for (std::int64_t v = 0; v < block.columns; v += vocabulary_tile_) {
    const std::int64_t tall = std::min(vocabulary_tile_, block.columns - v);
    with_.pack({z + v, pitch_, tall, block.rows, tall, true},
               by_column_ + v * chunk_steps + block.row / with_.step * tall);
  }
}

void HeadPass::add_to_inputs(const Block& block, const Room& room) const {
  const std::int64_t steps = with_.steps(block.columns), rows = with_.tile(block.rows);
  for (std::int64_t i = 0; i < block.rows; i += rows) {
    const std::int64_t tall = std::min(rows, block.rows - i);
    with_.pack({room.logits + i * pitch_, pitch_, tall, block.columns, tall, false},
               room.tiles + i * steps);
  }
  for (const Factor& factor : factors_) {
    const float* below = factor.scratch.below.at() +
                         with_.steps(block.column - packed_below_) * panels_width(factor.width);
    with_.product({block.rows, factor.width, steps, rows, room.tiles, below,
                   factor.scratch.slopes.at() + block.row * factor.width, factor.width,
                   block.column > 0});
  }
}

void HeadPass::add_to_weights(const Chunk& chunk, const Columns& group, const HeadGradients& to) {
  std::vector<PanelProduct> products;
  for (std::size_t i = 0; i < factors_.size(); ++i) {
    const std::int64_t width = factors_[i].width;
    if (float* dweight = dweight_of(i, to); dweight != nullptr)
      products.push_back({group.count, width, with_.steps(chunk.rows), vocabulary_tile_, by_column_,
                          factors_[i].scratch.across.at(), dweight + group.begin * width, width,
                          i > 0 || to.accumulate || chunk.begin > 0});
  }
  device_.multiply(with_, products);
}

void HeadPass::scatter_slopes(const Chunk& chunk, const Factor& factor, Tensor& dinputs) const {
  for (std::int64_t i = 0; i < chunk.rows; ++i)
    std::copy_n(factor.scratch.slopes.at() + i * factor.width, factor.width,
                out(dinputs) + token(chunk, i) * factor.width);
}

void HeadPass::backward_chunk(const Chunk& chunk, const HeadUpstream& up, const float* kept,
                              const HeadGradients& to) {
  pack_inputs_across(chunk, to);
  for (Factor& factor : factors_) factor.scratch.slopes.need(chunk.rows * factor.width);
  for_each_group([&](const Columns& group) {
    const Weights weights = kept == nullptr ? pack_weights(group) : Weights();
    need_weights_below(group);
    for_each_block(chunk, group, [&](const Block& block, const Room& room) {
      if (kept == nullptr) make_logits(block, weights, room.logits);
      differentiate(chunk, block, up, kept, room.logits);
      if (by_column_ != nullptr) pack_for_weights(chunk, block, room.logits);
      add_to_inputs(block, room);
    });
    add_to_weights(chunk, group, to);
  });
  scatter_slopes(chunk, factors_[0], to.dhidden);
  if (to.adapter != nullptr) scatter_slopes(chunk, factors_[1], to.adapter->ddown);
}

void HeadPass::backward(const HeadUpstream& up, const float* kept, std::int64_t kept_rows,
                        const HeadGradients& to) {
  for_each_kept_chunk(kept, kept_rows, device_.head_logits_ / head_columns,
                      [&](const Chunk& chunk, const float* kept_of_chunk) {
                        gather_inputs(chunk);
                        if (kept_of_chunk == nullptr) pack_inputs(chunk);
                        backward_chunk(chunk, up, kept_of_chunk, to);
                      });
}

void HeadPass::through(const HeadScores& scores, const HeadUpstream& up, const HeadGradients& to) {
  for_each_chunk(0, rows(), head_rows(vocabulary_, device_.head_logits_), [&](const Chunk& chunk) {
    float* kept = device_.kept_.need(kept_logits(chunk.rows));
    gather_inputs(chunk);
    forward_chunk(chunk, scores, kept);
    backward_chunk(chunk, up, kept, to);
  });
}

}  // namespace troupe::engine::ops
