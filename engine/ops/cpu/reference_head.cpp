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

/// cap(logit_scale * z); `slope`, where wanted, becomes how it rises with z.
float scaled_logit(float z, const HeadScale& scale, double* slope = nullptr) {
  const double product = double{scale.logit_scale} * double{z}, cap = scale.softcap;
  const double bent = cap > 0 ? std::tanh(product / cap) : 0;
  if (slope != nullptr) *slope = double{scale.logit_scale} * (1 - bent * bent);
  return static_cast<float>(cap > 0 ? cap * bent : product);
}

/// Of z = logits * inv_temperature; the one routine behind head() and token_logprob().
RowStats row_stats(std::span<const float> logits, float inv_temperature) {
  const double highest = double{*std::max_element(logits.begin(), logits.end()) * inv_temperature};
  double sum = 0, weighted = 0;
  for (const float logit : logits) {
    const double z = double{logit * inv_temperature} - highest, e = std::exp(z);
    sum += e;
    weighted += e * z;
  }
  return {static_cast<float>(highest + std::log(sum)),
          static_cast<float>(std::log(sum) - weighted / sum)};
}

/// One product of the head: weight.hidden, or up.down of its adapter.
struct HeadOperands {
  const Tensor& inputs;
  const std::vector<double> weight;
  const std::int64_t width, vocabulary;
  const Precision precision;

  HeadOperands(const Tensor& inputs_, const Tensor& weight_, Precision precision_)
      : inputs(inputs_),
        weight(operand(in(weight_), weight_.count(), 1, precision_)),
        width(width_of(weight_)),
        vocabulary(rows_of(weight_)),
        precision(precision_) {}

  std::vector<double> row(std::int64_t t) const {
    return operand(in(inputs) + t * width, width, 1, precision);
  }
  void add_logits(std::int64_t t, std::vector<float>& z) const {
    const std::vector<double> state = row(t);
    for (std::size_t v = 0; v < z.size(); ++v) {
      double sum = double{z[v]};
      for (std::size_t i = 0; i < state.size(); ++i) sum += state[i] * weight[v * state.size() + i];
      z[v] = static_cast<float>(sum);
    }
  }
};

/// Gradients of one product: of its inputs [T, width], assigned, and of its weight [V, width],
/// added where it is not frozen.
struct HeadSlopes {
  const HeadOperands& of;
  Tensor &dinputs, &dweight;
  std::vector<double> weight_sum;

  HeadSlopes(const HeadOperands& of_, Tensor& dinputs_, Tensor& dweight_)
      : of(of_), dinputs(dinputs_), dweight(dweight_) {
    if (dweight) weight_sum.assign(in(dweight), in(dweight) + dweight.count());
  }
  void add(std::int64_t t, const std::vector<double>& dz) {
    const auto width = static_cast<std::size_t>(of.width);
    const std::vector<double> state = of.row(t);
    std::vector<double> sum(width);
    for (std::size_t v = 0; v < dz.size(); ++v)
      for (std::size_t i = 0; i < width; ++i) {
        sum[i] += dz[v] * of.weight[v * width + i];
        if (!weight_sum.empty()) weight_sum[v * width + i] += dz[v] * state[i];
      }
    std::transform(sum.begin(), sum.end(), out(dinputs) + t * of.width,
                   [](double x) { return static_cast<float>(x); });
  }
  void finish() {
    if (dweight)
      std::transform(weight_sum.begin(), weight_sum.end(), out(dweight),
                     [](double x) { return static_cast<float>(x); });
  }
};

}  // namespace

void ReferenceDevice::head(const Tensor& hidden, const Tensor& weight,
                           std::span<const std::int32_t> targets, const HeadScale& scale,
                           Precision precision, Tensor& logp, Tensor& lse, Tensor* entropy,
                           const HeadAdapter* adapter, Tensor* kept) {
  check_head(hidden, weight, targets);
  check_head_adapter(adapter, rows_of(hidden), rows_of(weight));
  check_head_scores(targets, logp, lse, entropy);
  const auto count = static_cast<std::int64_t>(targets.size());
  if (kept != nullptr) *kept = {};
  std::vector<HeadOperands> products{HeadOperands(hidden, weight, precision)};
  if (adapter != nullptr) products.emplace_back(adapter->down, adapter->up, precision);
  for (std::int64_t t = 0; t < count; ++t) {
    const std::int32_t target = targets[static_cast<std::size_t>(t)];
    RowStats stats{0, 0};
    std::vector<float> z(static_cast<std::size_t>(rows_of(weight)));
    if (target != no_target) {
      for (const auto& product : products) product.add_logits(t, z);
      for (float& logit : z) logit = scaled_logit(logit, scale);
      stats = row_stats(z, scale.inv_temperature);
    }
    out(logp)[t] =
        target < 0 ? 0 : z[static_cast<std::size_t>(target)] * scale.inv_temperature - stats.lse;
    out(lse)[t] = stats.lse;
    if (entropy != nullptr) out(*entropy)[t] = stats.entropy;
  }
}

void ReferenceDevice::head_backward(const Tensor& hidden, const Tensor& weight,
                                    std::span<const std::int32_t> targets, const HeadScale& scale,
                                    Precision precision, const Tensor& lse, const Tensor& dlogp,
                                    const Tensor* dentropy, const Tensor* entropy, Tensor& dhidden,
                                    Tensor& dweight, HeadAdapter* adapter, const Tensor*,
                                    bool accumulate) {
  check_head(hidden, weight, targets);
  check_head_adapter(adapter, rows_of(hidden), rows_of(weight));
  check_head_gradients(hidden, weight, targets, dlogp, dentropy, entropy, dhidden, dweight);
  check(lse.count() == dlogp.count(), "head_backward: lse [T]");
  if (dweight && !accumulate) fill(dweight, 0);
  const auto count = static_cast<std::int64_t>(targets.size());
  std::vector<HeadOperands> products{HeadOperands(hidden, weight, precision)};
  if (adapter != nullptr) products.emplace_back(adapter->down, adapter->up, precision);
  std::vector<HeadSlopes> slopes{HeadSlopes(products[0], dhidden, dweight)};
  if (adapter != nullptr) slopes.emplace_back(products[1], adapter->ddown, adapter->dup);
  for (std::int64_t t = 0; t < count; ++t) {
    const std::int32_t target = targets[static_cast<std::size_t>(t)];
    std::vector<double> dz(static_cast<std::size_t>(rows_of(weight)));
    if (target != no_target) {
      std::vector<float> logits(dz.size());
      for (const auto& product : products) product.add_logits(t, logits);
      const double above = in(dlogp)[t], above_entropy = dentropy == nullptr ? 0 : in(*dentropy)[t];
      const double h = dentropy == nullptr ? 0 : in(*entropy)[t];
      for (std::size_t v = 0; v < logits.size(); ++v) {
        double slope = 1;
        const double log_p =
                         double{scaled_logit(logits[v], scale, &slope) * scale.inv_temperature} -
                         double{in(lse)[t]},
                     p = std::exp(log_p);
        const double onehot = static_cast<std::int32_t>(v) == target ? 1 : 0;
        const double exact = slope * double{scale.inv_temperature} *
                             (above * (onehot - p) - above_entropy * p * (log_p + h));
        dz[v] = precision == Precision::bf16 ? double{from_bf16(to_bf16(static_cast<float>(exact)))}
                                             : exact;
      }
    }
    for (auto& slope : slopes) slope.add(t, dz);
  }
  for (auto& slope : slopes) slope.finish();
}

void ReferenceDevice::scale_logits(Tensor& logits, const HeadScale& scale) {
  std::transform(in(logits), in(logits) + logits.count(), out(logits),
                 [&](float z) { return scaled_logit(z, scale); });
}

void ReferenceDevice::token_logprob(const Tensor& logits, std::span<const std::int32_t> targets,
                                    float inv_temperature, Tensor& logp, Tensor& lse) {
  const auto vocabulary = static_cast<std::size_t>(width_of(logits));
  check_targets(targets, rows_of(logits), width_of(logits));
  check(logp.count() == rows_of(logits) && lse.count() == rows_of(logits),
        "token_logprob: logp, lse [M]");
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const std::span<const float> z(in(logits) + t * vocabulary, vocabulary);
    out(lse)[t] = row_stats(z, inv_temperature).lse;
    out(logp)[t] = targets[t] < 0
                       ? 0
                       : z[static_cast<std::size_t>(targets[t])] * inv_temperature - out(lse)[t];
  }
}

}  // namespace troupe::engine::ops
