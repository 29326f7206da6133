// The vocabulary head, one row of logits at a time.
#include <algorithm>
#include <cmath>

#include "engine/ops/cpu/access.h"
#include "engine/ops/cpu/reference.h"

namespace troupe::engine::ops {
namespace {

struct RowStats {
  float lse, entropy;
};

/// Of z = logits * inv_temperature; the one routine behind head() and token_logprob().
RowStats row_stats(std::span<const float> logits, float inv_temperature) {
  const double highest = double{*std::max_element(logits.begin(), logits.end()) * inv_temperature};
  double sum = 0, weighted = 0;
  for (const float logit : logits) {
    const double z = double{logit * inv_temperature} - highest, e = std::exp(z);
    sum += e;
    weighted += e * z;
  }
  return {static_cast<float>(highest + std::log(sum)), static_cast<float>(std::log(sum) - weighted / sum)};
}

/// What the backward pass of one row needs: its hidden state and the logits as forward made them.
struct HeadOperands {
  const std::vector<double> weight;
  std::int64_t width, vocabulary;

  HeadOperands(const Tensor& weight_, Precision precision)
      : weight(operand(in(weight_), weight_.count(), 1, precision)), width(width_of(weight_)), vocabulary(rows_of(weight_)) {}

  void logits(const std::vector<double>& hidden, std::vector<float>& z) const {
    z.resize(static_cast<std::size_t>(vocabulary));
    for (std::size_t v = 0; v < z.size(); ++v) {
      double sum = 0;
      for (std::size_t i = 0; i < hidden.size(); ++i) sum += hidden[i] * weight[v * hidden.size() + i];
      z[v] = static_cast<float>(sum);
    }
  }
};

}  // namespace

void ReferenceDevice::head(const Tensor& hidden, const Tensor& weight, std::span<const std::int32_t> targets, float inv_temperature,
                           Precision precision, Tensor& logp, Tensor& lse, Tensor* entropy) {
  check_head(hidden, weight, targets);
  const auto count = static_cast<std::int64_t>(targets.size());
  check(logp.count() == count && lse.count() == count && (entropy == nullptr || entropy->count() == count), "head: logp, lse, entropy [T]");
  const HeadOperands operands(weight, precision);
  std::vector<float> z;
  for (std::int64_t t = 0; t < count; ++t) {
    const std::int32_t target = targets[static_cast<std::size_t>(t)];
    RowStats stats{0, 0};
    if (target != no_target) {
      operands.logits(operand(in(hidden) + t * operands.width, operands.width, 1, precision), z);
      stats = row_stats(z, inv_temperature);
    }
    out(logp)[t] = target < 0 ? 0 : z[static_cast<std::size_t>(target)] * inv_temperature - stats.lse;
    out(lse)[t] = stats.lse;
    if (entropy != nullptr) out(*entropy)[t] = stats.entropy;
  }
}

void ReferenceDevice::head_backward(const Tensor& hidden, const Tensor& weight, std::span<const std::int32_t> targets,
                                    float inv_temperature, Precision precision, const Tensor& lse, const Tensor& dlogp,
                                    const Tensor* dentropy, const Tensor* entropy, Tensor& dhidden, Tensor& dweight) {
  check_head(hidden, weight, targets);
  const auto count = static_cast<std::int64_t>(targets.size());
  check(lse.count() == count && dlogp.count() == count, "head_backward: lse, dlogp [T]");
  check(dhidden.count() == hidden.count() && dweight.count() == weight.count(), "head_backward: gradients");
  check(dentropy == nullptr || (entropy != nullptr && entropy->count() == count && dentropy->count() == count),
        "head_backward: entropy [T]");
  const HeadOperands operands(weight, precision);
  const std::size_t width = static_cast<std::size_t>(operands.width);
  std::vector<double> weight_sum(in(dweight), in(dweight) + dweight.count());
  std::vector<float> logits;
  for (std::int64_t t = 0; t < count; ++t) {
    const std::int32_t target = targets[static_cast<std::size_t>(t)];
    std::vector<double> hidden_sum(width);
    if (target != no_target) {
      const std::vector<double> state = operand(in(hidden) + t * operands.width, operands.width, 1, precision);
      operands.logits(state, logits);
      const double above = in(dlogp)[t], above_entropy = dentropy == nullptr ? 0 : in(*dentropy)[t];
      const double h = dentropy == nullptr ? 0 : in(*entropy)[t];
      for (std::size_t v = 0; v < logits.size(); ++v) {
        const double log_p = double{logits[v] * inv_temperature} - double{in(lse)[t]}, p = std::exp(log_p);
        const double onehot = static_cast<std::int32_t>(v) == target ? 1 : 0;
        const double exact = double{inv_temperature} * (above * (onehot - p) - above_entropy * p * (log_p + h));
        const double dz = precision == Precision::bf16 ? double{from_bf16(to_bf16(static_cast<float>(exact)))} : exact;
        for (std::size_t i = 0; i < width; ++i) {
          hidden_sum[i] += dz * operands.weight[v * width + i];
          weight_sum[v * width + i] += dz * state[i];
        }
      }
    }
    std::transform(hidden_sum.begin(), hidden_sum.end(), out(dhidden) + t * operands.width, [](double x) { return static_cast<float>(x); });
  }
  std::transform(weight_sum.begin(), weight_sum.end(), out(dweight), [](double x) { return static_cast<float>(x); });
}

void ReferenceDevice::token_logprob(const Tensor& logits, std::span<const std::int32_t> targets, float inv_temperature, Tensor& logp,
                                    Tensor& lse) {
  const auto vocabulary = static_cast<std::size_t>(width_of(logits));
  check_targets(targets, rows_of(logits), width_of(logits));
  check(logp.count() == rows_of(logits) && lse.count() == rows_of(logits), "token_logprob: logp, lse [M]");
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const std::span<const float> z(in(logits) + t * vocabulary, vocabulary);
    out(lse)[t] = row_stats(z, inv_temperature).lse;
    out(logp)[t] = targets[t] < 0 ? 0 : z[static_cast<std::size_t>(targets[t])] * inv_temperature - out(lse)[t];
  }
}

}  // namespace troupe::engine::ops
