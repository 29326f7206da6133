// The vocabulary head of the fast device: checks, and the passes of head_pass.h.
#include <algorithm>
#include <cmath>

#include "engine/ops/cpu/head_pass.h"

namespace troupe::engine::ops {
namespace {

HeadScores cleared(Tensor& logp, Tensor& lse, Tensor* entropy) {
  const HeadScores to{out(logp), out(lse), entropy == nullptr ? nullptr : out(*entropy)};
  for (float* column : {to.logp, to.lse, to.entropy})
    if (column != nullptr) std::fill_n(column, logp.count(), 0.0F);
  return to;
}

}  // namespace

void FastDevice::head(const Tensor& hidden, const Tensor& weight,
                      std::span<const std::int32_t> targets, const HeadScale& scale,
                      Precision precision, Tensor& logp, Tensor& lse, Tensor* entropy,
                      const HeadAdapter* adapter, Tensor* kept) {
  check_head_scores(targets, logp, lse, entropy);
  HeadPass pass(*this, hidden, weight, targets, scale, precision, adapter);
  const HeadScores to = cleared(logp, lse, entropy);
  const std::int64_t rows = kept == nullptr ? 0 : pass.rows_within(kept_logits_);
  if (kept != nullptr) *kept = rows > 0 ? empty({pass.kept_logits(rows)}, DType::f32) : Tensor();
  pass.forward(to, rows > 0 ? out(*kept) : nullptr, rows);
}

void FastDevice::head_through(const Tensor& hidden, const Tensor& weight,
                              std::span<const std::int32_t> targets, const HeadScale& scale,
                              Precision precision, const Tensor& dlogp, const Tensor* dentropy,
                              Tensor& logp, Tensor& lse, Tensor* entropy, Tensor& dhidden,
                              Tensor& dweight, HeadAdapter* adapter, bool accumulate) {
  check_head_scores(targets, logp, lse, entropy);
  check_head_gradients(hidden, weight, targets, dlogp, dentropy, entropy, dhidden, dweight);
  HeadPass pass(*this, hidden, weight, targets, scale, precision, adapter);
  const HeadScores scores = cleared(logp, lse, entropy);
  fill(dhidden, 0);
  if (dweight && !accumulate && pass.rows() == 0) fill(dweight, 0);
  if (adapter != nullptr) fill(adapter->ddown, 0);
  const HeadUpstream up{scores.lse, in(dlogp), dentropy == nullptr ? nullptr : in(*dentropy),
                        scores.entropy};
  pass.through(scores, up, {dhidden, dweight, adapter, accumulate});
}

void FastDevice::head_backward(const Tensor& hidden, const Tensor& weight,
                               std::span<const std::int32_t> targets, const HeadScale& scale,
                               Precision precision, const Tensor& lse, const Tensor& dlogp,
                               const Tensor* dentropy, const Tensor* entropy, Tensor& dhidden,
                               Tensor& dweight, HeadAdapter* adapter, const Tensor* kept,
                               bool accumulate) {
  check_head_gradients(hidden, weight, targets, dlogp, dentropy, entropy, dhidden, dweight);
  check(lse.count() == dlogp.count(), "head_backward: lse [T]");
  HeadPass pass(*this, hidden, weight, targets, scale, precision, adapter);
  const bool has_kept = kept != nullptr && *kept;
  const std::int64_t rows = pass.rows_within(has_kept ? kept->count() : 0);
  check(!has_kept || kept->count() == pass.kept_logits(rows),
        "head_backward: kept logits of another call");
  fill(dhidden, 0);
  if (dweight && !accumulate && pass.rows() == 0) fill(dweight, 0);
  if (adapter != nullptr) fill(adapter->ddown, 0);
  const HeadUpstream up{in(lse), in(dlogp), dentropy == nullptr ? nullptr : in(*dentropy),
                        dentropy == nullptr ? nullptr : in(*entropy)};
  pass.backward(up, has_kept ? in(*kept) : nullptr, rows, {dhidden, dweight, adapter, accumulate});
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
    for (std::int64_t t = begin; t < end; ++t)
      scale_row(values + t * vocabulary, vocabulary, scale);
  });
}

void FastDevice::token_logprob(const Tensor& logits, std::span<const std::int32_t> targets,
                               float inv_temperature, Tensor& logp, Tensor& lse) {
  const std::int64_t vocabulary = width_of(logits), count = rows_of(logits),
                     blocks = head_blocks(vocabulary);
  check_targets(targets, count, vocabulary);
  check(logp.count() == count && lse.count() == count, "token_logprob: logp, lse [M]");
  const float* values = in(logits);
  std::vector<SoftmaxSums> sums(static_cast<std::size_t>(count * blocks));
  share(count * blocks, 8 * head_block, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t column = i % blocks * head_block;
      sums[static_cast<std::size_t>(i)] =
          kernels_.softmax_sums(values + i / blocks * vocabulary + column,
                                std::min(head_block, vocabulary - column), inv_temperature, false);
    }
  });
  float *logp_at = out(logp), *lse_at = out(lse);
  for (std::int64_t t = 0; t < count; ++t) {
    const std::int32_t target = targets[static_cast<std::size_t>(t)];
    const RowResult row(joined(std::span(sums).subspan(static_cast<std::size_t>(t * blocks),
                                                       static_cast<std::size_t>(blocks))));
    lse_at[t] = row.lse;
    logp_at[t] = target < 0 ? 0 : row.logp(values[t * vocabulary + target], inv_temperature);
  }
}

}  // namespace troupe::engine::ops
