// The vocabulary head in chunks of rows: their logits live in scratch memory only, forward and backward.
#include <algorithm>
#include <cmath>

#include "engine/ops/cpu/fast_device.h"

namespace troupe::engine::ops {
namespace {

/// The one definition of a token's log-probability, for training and for sampling.
struct RowResult {
  float lse, entropy;
  explicit RowResult(const SoftmaxSums& sums) {
    const double log_sum = std::log(sums.sum);
    lse = static_cast<float>(double{sums.largest} + log_sum);
    entropy = static_cast<float>(log_sum - sums.weighted / sums.sum);
  }
  float logp(float logit, float inv_temperature) const { return logit * inv_temperature - lse; }
};

/// Enough rows that the weights are read seldom; few enough that logits of a large vocabulary stay below some tens of megabytes.
std::int64_t rows_of_chunk(std::int64_t vocabulary) { return std::clamp<std::int64_t>((std::int64_t{2} << 20) / vocabulary, 96, 1536); }

}  // namespace

template <class Visit>
void FastDevice::for_each_head_chunk(const Tensor& hidden, const Tensor& weight, std::span<const std::int32_t> targets, Precision precision,
                                     const HeadAdapter* adapter, Visit visit) {
  check_head_adapter(adapter, rows_of(hidden), rows_of(weight));
  const std::int64_t rank = adapter == nullptr ? 0 : width_of(adapter->down);
  const std::int64_t width = width_of(weight), vocabulary = rows_of(weight);
  head_rows_.clear();
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (targets[t] != no_target) head_rows_.push_back(static_cast<std::int32_t>(t));
  }
  const auto total = static_cast<std::int64_t>(head_rows_.size()), most = std::min(total, rows_of_chunk(vocabulary));
  for (std::int64_t begin = 0; begin < total; begin += most) {
    const std::int64_t count = std::min(most, total - begin);
    const HeadChunk chunk{std::span(head_rows_).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)),
                          hidden_.need(most * width), logits_.need(most * vocabulary), adapter ? down_.need(most * rank) : nullptr};
    for (std::int64_t i = 0; i < count; ++i) {
      std::copy_n(in(hidden) + chunk.rows[static_cast<std::size_t>(i)] * width, width, chunk.hidden + i * width);
    }
    product(Kind::dot, {count, vocabulary, width, chunk.hidden, width, 1, in(weight), width, chunk.logits, vocabulary, false}, precision);
    if (adapter != nullptr) {
      for (std::int64_t i = 0; i < count; ++i)
        std::copy_n(in(adapter->down) + chunk.rows[static_cast<std::size_t>(i)] * rank, rank, chunk.down + i * rank);
      product(Kind::dot, {count, vocabulary, rank, chunk.down, rank, 1, in(adapter->up), rank, chunk.logits, vocabulary, true}, precision);
    }
    visit(chunk);
  }
}

void FastDevice::head(const Tensor& hidden, const Tensor& weight, std::span<const std::int32_t> targets, const HeadScale& scale,
                      Precision precision, Tensor& logp, Tensor& lse, Tensor* entropy, const HeadAdapter* adapter) {
  const float inv_temperature = scale.inv_temperature;
  check_head(hidden, weight, targets);
  const auto count = static_cast<std::int64_t>(targets.size());
  check(logp.count() == count && lse.count() == count && (entropy == nullptr || entropy->count() == count), "head: logp, lse, entropy [T]");
  std::fill_n(out(logp), count, 0.0F);
  std::fill_n(out(lse), count, 0.0F);
  if (entropy != nullptr) std::fill_n(out(*entropy), count, 0.0F);
  float *logp_at = out(logp), *lse_at = out(lse), *entropy_at = entropy == nullptr ? nullptr : out(*entropy);
  const std::int64_t vocabulary = rows_of(weight);
  for_each_head_chunk(hidden, weight, targets, precision, adapter, [&](const HeadChunk& chunk) {
    share(static_cast<std::int64_t>(chunk.rows.size()), 8 * vocabulary, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int32_t t = chunk.rows[static_cast<std::size_t>(i)];
        float* z = chunk.logits + i * vocabulary;
        scale_row(z, vocabulary, scale);
        const std::int32_t target = targets[static_cast<std::size_t>(t)];
        const RowResult row(kernels_.softmax_sums(z, vocabulary, inv_temperature, entropy_at != nullptr));
        if (target >= 0) logp_at[t] = row.logp(z[target], inv_temperature);
        lse_at[t] = row.lse;
        if (entropy_at != nullptr) entropy_at[t] = row.entropy;
      }
    });
  });
}

void FastDevice::head_slopes(const HeadChunk& chunk, const Tensor& weight, const float* inputs, Precision precision, Scratch& scratch,
                             Tensor& dinputs, Tensor& dweight) {
  const auto rows = static_cast<std::int64_t>(chunk.rows.size());
  const std::int64_t width = width_of(weight), vocabulary = rows_of(weight);
  float* below = scratch.need(rows * width);
  product(Kind::outer, {rows, width, vocabulary, chunk.logits, vocabulary, 1, in(weight), width, below, width, false}, precision);
  for (std::int64_t i = 0; i < rows; ++i)
    std::copy_n(below + i * width, width, out(dinputs) + chunk.rows[static_cast<std::size_t>(i)] * width);
  if (dweight)
    product(Kind::outer, {vocabulary, width, rows, chunk.logits, 1, vocabulary, inputs, width, out(dweight), width, true}, precision);
}

void FastDevice::head_backward(const Tensor& hidden, const Tensor& weight, std::span<const std::int32_t> targets, const HeadScale& scale,
                               Precision precision, const Tensor& lse, const Tensor& dlogp, const Tensor* dentropy, const Tensor* entropy,
                               Tensor& dhidden, Tensor& dweight, HeadAdapter* adapter) {
  const float inv_temperature = scale.inv_temperature;
  check_head(hidden, weight, targets);
  const auto count = static_cast<std::int64_t>(targets.size());
  check(lse.count() == count && dlogp.count() == count, "head_backward: lse, dlogp [T]");
  check(dhidden.count() == hidden.count() && (!dweight || dweight.count() == weight.count()), "head_backward: gradients");
  check(dentropy == nullptr || (entropy != nullptr && entropy->count() == count && dentropy->count() == count),
        "head_backward: entropy [T]");
  const float *lse_at = in(lse), *dlogp_at = in(dlogp);
  const float *dentropy_at = dentropy == nullptr ? nullptr : in(*dentropy), *entropy_at = dentropy == nullptr ? nullptr : in(*entropy);
  const std::int64_t vocabulary = rows_of(weight);
  fill(dhidden, 0);
  if (adapter != nullptr) fill(adapter->ddown, 0);
  for_each_head_chunk(hidden, weight, targets, precision, adapter, [&](const HeadChunk& chunk) {
    share(static_cast<std::int64_t>(chunk.rows.size()), 8 * vocabulary, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int32_t t = chunk.rows[static_cast<std::size_t>(i)];
        float* z = chunk.logits + i * vocabulary;
        const HeadRow row{inv_temperature,
                          lse_at[t],
                          dlogp_at[t],
                          dentropy_at == nullptr ? 0 : dentropy_at[t],
                          entropy_at == nullptr ? 0 : entropy_at[t],
                          scale.logit_scale,
                          scale.softcap == 0 ? 0 : 1 / scale.softcap};
        scale_row(z, vocabulary, scale);
        const std::int32_t target = targets[static_cast<std::size_t>(t)];
        const float own = target < 0 ? 0 : inv_temperature * dlogp_at[t] * row.slope(z[target]);
        kernels_.head_dlogits(z, vocabulary, row);
        if (target >= 0) z[target] += own;
      }
    });
    head_slopes(chunk, weight, chunk.hidden, precision, dhidden_, dhidden, dweight);
    if (adapter != nullptr) head_slopes(chunk, adapter->up, chunk.down, precision, ddown_, adapter->ddown, adapter->dup);
  });
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
  const std::int64_t vocabulary = width_of(logits), count = rows_of(logits);
  check_targets(targets, count, vocabulary);
  check(logp.count() == count && lse.count() == count, "token_logprob: logp, lse [M]");
  const float* values = in(logits);
  float *logp_at = out(logp), *lse_at = out(lse);
  share(count, 8 * vocabulary, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t) {
      const float* z = values + t * vocabulary;
      const std::int32_t target = targets[static_cast<std::size_t>(t)];
      const RowResult row(kernels_.softmax_sums(z, vocabulary, inv_temperature, false));
      lse_at[t] = row.lse;
      logp_at[t] = target < 0 ? 0 : row.logp(z[target], inv_temperature);
    }
  });
}

}  // namespace troupe::engine::ops
