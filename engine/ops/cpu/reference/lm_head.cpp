#include "engine/ops/cpu/reference/lm_head.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/ops/cpu/reference/operand.h"
#include "engine/ops/memory/host_buffer.h"
#include "engine/ops/shapes.h"

namespace troupe::engine::ops::cpu::reference {
namespace {

struct RowStats {
  float lse, entropy;
};

/// Returns cap(logit_scale * z), and its derivative in `derivative` unless that is nullptr.
float scaled_logit(float z, const HeadScale& scale, double* derivative = nullptr) {
  const double product = double{scale.logit_scale} * double{z}, cap = scale.softcap;
  const double tanh = cap > 0 ? std::tanh(product / cap) : 0;
  if (derivative != nullptr) *derivative = double{scale.logit_scale} * (1 - tanh * tanh);
  return static_cast<float>(cap > 0 ? cap * tanh : product);
}

bool is_kept(const std::uint64_t* kept, std::size_t column) {
  return kept == nullptr || (kept[column / 64] >> column % 64 & 1) != 0;
}

/// Softmax statistics of z = logits * inv_temperature over the kept columns (ColumnMask), or all of
/// them for nullptr; for head() and token_logprob().
RowStats row_stats(std::span<const float> logits, float inv_temperature,
                   const std::uint64_t* kept) {
  constexpr double none = -std::numeric_limits<double>::infinity();
  double highest = none, sum = 0, weighted = 0;
  for (std::size_t v = 0; v < logits.size(); ++v)
    if (is_kept(kept, v)) highest = std::max(highest, double{logits[v] * inv_temperature});
  if (highest == none) return {static_cast<float>(none), 0};
  for (std::size_t v = 0; v < logits.size(); ++v) {
    if (!is_kept(kept, v)) continue;
    const double z = double{logits[v] * inv_temperature} - highest, e = std::exp(z);
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
        weight(operand(data(weight_), weight_.count(), 1, precision_)),
        width(width_of(weight_)),
        vocabulary(rows_of(weight_)),
        precision(precision_) {}

  std::vector<double> row(std::int64_t t) const {
    return operand(data(inputs) + t * width, width, 1, precision);
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

/// Gradients of one product: dinputs [T, width] are assigned, dweight [V, width] is accumulated
/// unless it is frozen.
struct HeadProductGradients {
  const HeadOperands& of;
  Tensor &dinputs, &dweight;
  std::vector<double> weight_sum;

  HeadProductGradients(const HeadOperands& of_, Tensor& dinputs_, Tensor& dweight_)
      : of(of_), dinputs(dinputs_), dweight(dweight_) {
    if (dweight) weight_sum.assign(data(dweight), data(dweight) + dweight.count());
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
    std::transform(sum.begin(), sum.end(), mutable_data(dinputs) + t * of.width,
                   [](double x) { return static_cast<float>(x); });
  }
  void finish() {
    if (dweight)
      std::transform(weight_sum.begin(), weight_sum.end(), mutable_data(dweight),
                     [](double x) { return static_cast<float>(x); });
  }
};

/// Gradients of the logits of row t, before rounding.
std::vector<double> exact_dlogits(const HeadInputs& in, const HeadSaved& saved,
                                  const HeadUpstream& up, std::size_t t,
                                  const std::vector<float>& products) {
  const double dlogp = data(up.dlogp)[t],
               dentropy = up.dentropy == nullptr ? 0 : data(*up.dentropy)[t],
               entropy = up.dentropy == nullptr ? 0 : data(*saved.entropy)[t];
  const TargetRows rows{in.targets.host, in.columns};
  std::vector<double> dz(products.size());
  for (std::size_t v = 0; v < products.size(); ++v) {
    if (!is_kept(rows.columns_of(static_cast<std::int64_t>(t)), v)) continue;
    double derivative = 1;
    const float logit = scaled_logit(products[v], in.scale, &derivative);
    const double log_p = double{logit * in.scale.inv_temperature} - double{data(saved.lse)[t]},
                 p = std::exp(log_p);
    const double onehot = static_cast<std::int32_t>(v) == in.targets.host[t] ? 1 : 0;
    dz[v] = derivative * double{in.scale.inv_temperature} *
            (dlogp * (onehot - p) - dentropy * p * (log_p + entropy));
  }
  return dz;
}

}  // namespace

void head(const HeadInputs& in, const HeadOutputs& out) {
  const auto& [hidden, weight, targets, scale, precision, adapter, columns] = in;
  const TargetRows rows{targets.host, columns};
  const auto count = std::ssize(targets.host);
  std::vector<HeadOperands> products{HeadOperands(hidden, weight, precision)};
  if (adapter != nullptr) products.emplace_back(adapter->down, adapter->up, precision);
  for (std::int64_t t = 0; t < count; ++t) {
    const std::int32_t target = targets.host[static_cast<std::size_t>(t)];
    RowStats stats{0, 0}, whole{0, 0};
    std::vector<float> z(static_cast<std::size_t>(rows_of(weight)));
    if (target != no_target) {
      for (const auto& product : products) product.add_logits(t, z);
      for (float& logit : z) logit = scaled_logit(logit, scale);
      stats = row_stats(z, scale.inv_temperature, rows.columns_of(t));
      if (out.whole_lse != nullptr) whole = row_stats(z, scale.inv_temperature, nullptr);
    }
    mutable_data(out.logp)[t] =
        target < 0 ? 0 : z[static_cast<std::size_t>(target)] * scale.inv_temperature - stats.lse;
    mutable_data(out.lse)[t] = stats.lse;
    if (out.entropy != nullptr) mutable_data(*out.entropy)[t] = stats.entropy;
    if (out.whole_lse == nullptr) continue;
    mutable_data(*out.whole_lse)[t] = whole.lse;
    mutable_data(*out.whole_entropy)[t] = whole.entropy;
  }
}

void head_backward(const HeadInputs& in, const HeadSaved& saved, const HeadUpstream& up,
                   const HeadGradients& to) {
  std::vector<HeadOperands> products{HeadOperands(in.hidden, in.weight, in.precision)};
  if (in.adapter != nullptr) products.emplace_back(in.adapter->down, in.adapter->up, in.precision);
  std::vector<HeadProductGradients> gradients{
      HeadProductGradients(products[0], to.dhidden, to.dweight)};
  if (in.adapter != nullptr)
    gradients.emplace_back(products[1], to.adapter->ddown, to.adapter->dup);
  for (std::size_t t = 0; t < in.targets.host.size(); ++t) {
    std::vector<double> dz(static_cast<std::size_t>(rows_of(in.weight)));
    if (in.targets.host[t] != no_target) {
      std::vector<float> z(dz.size());
      for (const auto& product : products) product.add_logits(static_cast<std::int64_t>(t), z);
      dz = exact_dlogits(in, saved, up, t, z);
      for (double& value : dz)
        if (in.precision == Precision::bf16) value = rounded(value, in.precision);
    }
    for (auto& gradient : gradients) gradient.add(static_cast<std::int64_t>(t), dz);
  }
  for (auto& gradient : gradients) gradient.finish();
}

void scale_logits(Tensor& logits, const HeadScale& scale) {
  std::transform(data(logits), data(logits) + logits.count(), mutable_data(logits),
                 [&](float z) { return scaled_logit(z, scale); });
}

void token_logprob(const Tensor& logits, const TargetRows& rows, float inv_temperature,
                   Tensor& logp, Tensor& lse) {
  const auto vocabulary = static_cast<std::size_t>(width_of(logits));
  const auto targets = rows.targets;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const std::span<const float> z(data(logits) + t * vocabulary, vocabulary);
    mutable_data(lse)[t] =
        row_stats(z, inv_temperature, rows.columns_of(static_cast<std::int64_t>(t))).lse;
    mutable_data(logp)[t] =
        targets[t] < 0
            ? 0
            : z[static_cast<std::size_t>(targets[t])] * inv_temperature - mutable_data(lse)[t];
  }
}

}  // namespace troupe::engine::ops::cpu::reference
