#include "engine/ops/cpu/lm_head/lm_head.h"

#include <algorithm>

#include "engine/ops/cpu/rows/elementwise.h"

namespace troupe::engine::ops::cpu {
namespace {

LmHeadScores cleared_scores(const HeadOutputs& out) {
  const auto data_of = [](Tensor* x) { return x == nullptr ? nullptr : mutable_data(*x); };
  const LmHeadScores scores{mutable_data(out.logp), mutable_data(out.lse), data_of(out.entropy),
                            data_of(out.whole_lse), data_of(out.whole_entropy)};
  for (float* column :
       {scores.logp, scores.lse, scores.entropy, scores.whole_lse, scores.whole_entropy})
    if (column != nullptr) std::fill_n(column, out.logp.count(), 0.0F);
  return scores;
}

void clear_gradients(const Context& context, const LmHeadPass& pass, const HeadGradients& to) {
  fill(context, to.dhidden, 0);
  if (to.dweight && !to.accumulate && pass.rows() == 0) fill(context, to.dweight, 0);
  if (to.adapter != nullptr) fill(context, to.adapter->ddown, 0);
}

const float* data_or_null(const Tensor* x) {
  return x == nullptr ? nullptr : data(*x);
}

}  // namespace

void lm_head(const Context& context, const LmHeadLimits& limits, const HeadInputs& in,
             const HeadOutputs& out) {
  LmHeadPass pass(context, limits, in);
  const LmHeadScores scores = cleared_scores(out);
  const bool keep = out.kept != nullptr && *out.kept;
  pass.forward(scores, keep ? mutable_data(*out.kept) : nullptr,
               keep ? pass.rows_within(limits.max_kept_logits) : 0);
}

std::int64_t lm_head_kept_logits(const Context& context, const LmHeadLimits& limits,
                                 const HeadInputs& in) {
  const LmHeadPass pass(context, limits, in);
  return pass.kept_logits(pass.rows_within(limits.max_kept_logits));
}

void lm_head_forward_backward(const Context& context, const LmHeadLimits& limits,
                              const HeadInputs& in, const HeadUpstream& up, const HeadOutputs& out,
                              const HeadGradients& to) {
  LmHeadPass pass(context, limits, in);
  const LmHeadScores scores = cleared_scores(out);
  clear_gradients(context, pass, to);
  pass.forward_backward(
      scores, {scores.lse, data(up.dlogp), data_or_null(up.dentropy), scores.entropy}, to);
}

void lm_head_backward(const Context& context, const LmHeadLimits& limits, const HeadInputs& in,
                      const HeadSaved& saved, const HeadUpstream& up, const HeadGradients& to) {
  LmHeadPass pass(context, limits, in);
  const bool has_kept = saved.kept != nullptr && *saved.kept;
  const std::int64_t rows = pass.rows_within(has_kept ? saved.kept->count() : 0);
  check(!has_kept || saved.kept->count() == pass.kept_logits(rows),
        "head_backward: kept logits of another call");
  clear_gradients(context, pass, to);
  const LmHeadUpstream upstream{data(saved.lse), data(up.dlogp), data_or_null(up.dentropy),
                                up.dentropy == nullptr ? nullptr : data(*saved.entropy)};
  pass.backward(upstream, has_kept ? data(*saved.kept) : nullptr, rows, to);
}

void scale_row(const Kernels& kernels, float* logits, std::int64_t n, const HeadScale& scale) {
  if (scale.softcap != 0) return kernels.cap(logits, n, scale.logit_scale, scale.softcap);
  if (scale.logit_scale != 1) kernels.scale(logits, scale.logit_scale, n);
}

void scale_logits(const Context& context, Tensor& logits, const HeadScale& scale) {
  if (!scale.changes_logits()) return;
  float* values = mutable_data(logits);
  const std::int64_t vocabulary = width_of(logits);
  context.parallel_ranges(
      rows_of(logits), 8 * vocabulary, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t t = begin; t < end; ++t)
          scale_row(context.kernels, values + t * vocabulary, vocabulary, scale);
      });
}

void token_logprob(const Context& context, const Tensor& logits, const TargetRows& rows,
                   float inv_temperature, Tensor& logp, Tensor& lse) {
  const std::int64_t vocabulary = width_of(logits), count = rows_of(logits),
                     blocks = lm_head_blocks(vocabulary);
  const float* values = data(logits);
  std::vector<SoftmaxSums> sums(static_cast<std::size_t>(count * blocks));
  context.parallel_ranges(
      count * blocks, 8 * lm_head_block, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t column = i % blocks * lm_head_block;
          sums[static_cast<std::size_t>(i)] = softmax_over(
              context.kernels,
              {values + i / blocks * vocabulary + column,
               std::min(lm_head_block, vocabulary - column), column, rows.columns_of(i / blocks)},
              inv_temperature, false);
        }
      });
  float *logp_at = mutable_data(logp), *lse_at = mutable_data(lse);
  for (std::int64_t t = 0; t < count; ++t) {
    const std::int32_t target = rows.targets[static_cast<std::size_t>(t)];
    const TokenLogprob row(join_blocks(std::span(sums).subspan(static_cast<std::size_t>(t * blocks),
                                                               static_cast<std::size_t>(blocks))));
    lse_at[t] = row.lse;
    logp_at[t] = target < 0 ? 0 : row.logp(values[t * vocabulary + target], inv_temperature);
  }
}

}  // namespace troupe::engine::ops::cpu
