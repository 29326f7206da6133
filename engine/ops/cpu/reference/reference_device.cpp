#include "engine/ops/cpu/reference/reference_device.h"

#include <Eigen/Core>
#include <cmath>

#include "engine/ops/cpu/cpu_options.h"
#include "engine/ops/cpu/host_buffer.h"
#include "engine/ops/cpu/kernels/kernels.h"
#include "engine/ops/cpu/reference/attention.h"
#include "engine/ops/cpu/reference/gemm.h"
#include "engine/ops/cpu/reference/lm_head.h"
#include "engine/ops/cpu/shapes.h"

namespace troupe::engine::ops::cpu::reference {
namespace {

using Array = Eigen::Map<Eigen::ArrayXf>;
using ConstArray = Eigen::Map<const Eigen::ArrayXf>;
using Doubles = Eigen::ArrayXd;

ConstArray row(const float* x, std::int64_t t, std::int64_t width) {
  return {x + t * width, width};
}
Array row(float* x, std::int64_t t, std::int64_t width) {
  return {x + t * width, width};
}

Doubles row(const Tensor& x, std::int64_t t, std::int64_t width) {
  return Eigen::Map<const Eigen::ArrayXf>(data(x) + t * width, width).cast<double>();
}
Doubles all(const Tensor& x) {
  return row(x, 0, x.count());
}
void store(const Doubles& values, Tensor& to, std::int64_t t = 0) {
  Array(mutable_data(to) + t * values.size(), values.size()) = values.cast<float>();
}

Doubles error_function(const Doubles& x) {
  return x.unaryExpr([](double value) { return std::erf(value); });
}

/// Activation of x and its derivative.
struct Activated {
  Doubles value, derivative;
};

Activated activated(Activation activation, const Doubles& x) {
  if (activation == Activation::gelu) {
    const Doubles share = 0.5 * (1 + error_function(x / std::sqrt(2.0)));
    return {x * share, share + x * (-0.5 * x.square()).exp() / std::sqrt(8 * std::atan(1.0))};
  }
  // The tanh formula of GELU is x sigmoid(2 sqrt(2 / pi) (x + cubic x^3)).
  const double rate = std::sqrt(2 / std::atan(1.0)), cubic = 0.044715;
  const bool tanh = activation == Activation::gelu_tanh;
  const Doubles inner = tanh ? Doubles(rate * (x + cubic * x.cube())) : x;
  const Doubles dinner =
      tanh ? Doubles(rate * (1 + 3 * cubic * x.square())) : Doubles::Ones(x.size());
  const Doubles sigmoid = 1 / (1 + (-inner).exp());
  return {x * sigmoid, sigmoid * (1 + x * dinner * (1 - sigmoid))};
}

}  // namespace

void ReferenceDevice::pack(const Tensor& weight, DType type, Tensor& packed) {
  const Shape shape = packed_shape(type, rows_of(weight), width_of(weight));
  if (!packed) packed = empty(shape, type);
  check(packed.dtype() == type && packed.shape() == shape,
        "pack: a packed weight of another shape or type");
  pack_weight(weight, packed);
}

void ReferenceDevice::gemm(const Tensor& a, const Tensor& b, Tensor& c, Gemm how) {
  reference::gemm(a, b, c, how);
}

void ReferenceDevice::add_bias(Tensor& y, const Tensor& bias) {
  check(width_of(y) == bias.count(), "add_bias: y [T, F], bias [F]");
  for (std::int64_t t = 0; t < rows_of(y); ++t)
    row(mutable_data(y), t, bias.count()) += row(data(bias), 0, bias.count());
}

void ReferenceDevice::bias_backward(const Tensor& dy, Tensor& dbias) {
  check(width_of(dy) == dbias.count(), "bias_backward: dy [T, F], dbias [F]");
  Doubles sum = row(data(dbias), 0, dbias.count()).cast<double>();
  for (std::int64_t t = 0; t < rows_of(dy); ++t)
    sum += row(data(dy), t, dbias.count()).cast<double>();
  row(mutable_data(dbias), 0, dbias.count()) = sum.cast<float>();
}

void ReferenceDevice::add(const Tensor& a, const Tensor& b, Tensor& sum) {
  check(a.count() == b.count() && a.count() == sum.count(), "add: operands differ in size");
  row(mutable_data(sum), 0, sum.count()) = row(data(a), 0, a.count()) + row(data(b), 0, b.count());
}

void ReferenceDevice::scale(Tensor& x, float factor) {
  row(mutable_data(x), 0, x.count()) *= factor;
}

void ReferenceDevice::rope(Tensor& x, std::span<const std::int32_t> positions, const Tensor& cos,
                           const Tensor& sin, int heads, bool inverse) {
  check_rope(x, positions, cos, sin, heads);
  const std::int64_t width = width_of(x), size = width / heads, half = size / 2;
  const double sign = inverse ? -1 : 1;
  for (std::size_t t = 0; t < positions.size(); ++t) {
    const Doubles c = row(data(cos), positions[t], half).cast<double>();
    const Doubles s = row(data(sin), positions[t], half).cast<double>() * sign;
    for (int h = 0; h < heads; ++h) {
      Array head = row(mutable_data(x) + static_cast<std::int64_t>(t) * width, h, size);
      const Doubles low = head.head(half).cast<double>(), high = head.tail(half).cast<double>();
      head.head(half) = (low * c - high * s).cast<float>();
      head.tail(half) = (high * c + low * s).cast<float>();
    }
  }
}

void ReferenceDevice::rms_norm(const Tensor& x, const Tensor& gain, float eps, Tensor& y,
                               Tensor& inv_rms, float offset) {
  check_norm(x, gain, y, inv_rms);
  const Doubles weight = all(gain) + double{offset};
  for (std::int64_t t = 0; t < rows_of(x); ++t) {
    const Doubles values = row(x, t, weight.size());
    const double inverse = 1 / std::sqrt(values.square().mean() + double{eps});
    mutable_data(inv_rms)[t] = static_cast<float>(inverse);
    store(values * inverse * weight, y, t);
  }
}

void ReferenceDevice::rms_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& inv_rms,
                                        const Tensor& dy, Tensor& dx, Tensor& dgain, float offset) {
  check_norm_backward(x, gain, inv_rms, dy, dx, dgain);
  const Doubles weight = all(gain) + double{offset};
  Doubles gain_sum = all(dgain);
  for (std::int64_t t = 0; t < rows_of(x); ++t) {
    const double inverse = data(inv_rms)[t];
    const Doubles normed = row(x, t, weight.size()) * inverse, above = row(dy, t, weight.size());
    gain_sum += above * normed;
    const Doubles weighted = above * weight;
    store(inverse * (weighted - normed * (weighted * normed).mean()), dx, t);
  }
  store(gain_sum, dgain);
}

void ReferenceDevice::layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, float eps,
                                 Tensor& y, Tensor& mean, Tensor& inv_std) {
  check_norm(x, gain, y, inv_std);
  check_layer_norm(gain, bias, mean, inv_std);
  const Doubles weight = all(gain);
  for (std::int64_t t = 0; t < rows_of(x); ++t) {
    const Doubles values = row(x, t, weight.size());
    const double middle = values.mean(),
                 inverse = 1 / std::sqrt((values - middle).square().mean() + double{eps});
    mutable_data(mean)[t] = static_cast<float>(middle);
    mutable_data(inv_std)[t] = static_cast<float>(inverse);
    Doubles result = (values - middle) * inverse * weight;
    if (bias) result += all(bias);
    store(result, y, t);
  }
}

void ReferenceDevice::layer_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& mean,
                                          const Tensor& inv_std, const Tensor& dy, Tensor& dx,
                                          Tensor& dgain) {
  check_norm_backward(x, gain, inv_std, dy, dx, dgain);
  check_layer_norm(gain, {}, mean, inv_std);
  const Doubles weight = all(gain);
  Doubles gain_sum = all(dgain);
  for (std::int64_t t = 0; t < rows_of(x); ++t) {
    const double inverse = data(inv_std)[t];
    const Doubles normed = (row(x, t, weight.size()) - double{data(mean)[t]}) * inverse,
                  above = row(dy, t, weight.size());
    gain_sum += above * normed;
    const Doubles weighted = above * weight;
    store(inverse * (weighted - weighted.mean() - normed * (weighted * normed).mean()), dx, t);
  }
  store(gain_sum, dgain);
}

void ReferenceDevice::gated(Activation activation, const Tensor& gate, const Tensor& up,
                            Tensor& y) {
  check(gate.count() == up.count() && gate.count() == y.count(), "gated: operands differ in size");
  store(activated(activation, all(gate)).value * all(up), y);
}

void ReferenceDevice::gated_backward(Activation activation, const Tensor& gate, const Tensor& up,
                                     const Tensor& dy, Tensor& dgate, Tensor& dup, Tensor* y) {
  check_gated_backward(gate, up, dy, dgate, dup, y);
  const Activated of = activated(activation, all(gate));
  const Doubles u = all(up), above = all(dy);
  if (y != nullptr) store(of.value * u, *y);
  store(above * of.value, dup);
  store(above * u * of.derivative, dgate);
}

void ReferenceDevice::activate(Activation activation, const Tensor& x, Tensor& y) {
  check(x.count() == y.count(), "activate: operands differ in size");
  store(activated(activation, all(x)).value, y);
}

void ReferenceDevice::activate_backward(Activation activation, const Tensor& x, const Tensor& dy,
                                        Tensor& dx) {
  check(x.count() == dy.count() && x.count() == dx.count(),
        "activate_backward: operands differ in size");
  store(all(dy) * activated(activation, all(x)).derivative, dx);
}

void ReferenceDevice::attention(const AttentionInputs& in, Tensor& out, Tensor* lse) {
  check_attention(in, out, lse);
  reference::attention(in, out, lse);
}

void ReferenceDevice::attention_backward(const AttentionInputs& in, const AttentionBackward& with) {
  check_attention_backward(in, with);
  reference::attention_backward(in, with);
}

void ReferenceDevice::head(const HeadInputs& in, const HeadOutputs& out) {
  check_head(in);
  check_head_outputs(in, out);
  if (out.kept != nullptr) *out.kept = {};
  reference::head(in, out);
}

void ReferenceDevice::head_backward(const HeadInputs& in, const HeadSaved& saved,
                                    const HeadUpstream& up, const HeadGradients& to) {
  check_head(in);
  check_head_gradients(in, up, saved.entropy, to);
  check(saved.lse.count() == up.dlogp.count(), "head_backward: lse [T]");
  if (to.dweight && !to.accumulate) fill(to.dweight, 0);
  reference::head_backward(in, saved, up, to);
}

void ReferenceDevice::scale_logits(Tensor& logits, const HeadScale& scale) {
  reference::scale_logits(logits, scale);
}

void ReferenceDevice::token_logprob(const Tensor& logits, std::span<const std::int32_t> targets,
                                    float inv_temperature, Tensor& logp, Tensor& lse) {
  check_targets(targets, rows_of(logits), width_of(logits));
  check(logp.count() == rows_of(logits) && lse.count() == rows_of(logits),
        "token_logprob: logp, lse [M]");
  reference::token_logprob(logits, targets, inv_temperature, logp, lse);
}

void ReferenceDevice::adamw(Tensor& values, Tensor& grads, Tensor& m, Tensor& v, const AdamW& how) {
  const std::int64_t count = values.count();
  check(grads.count() == count && m.count() == count && v.count() == count,
        "adamw: operands differ in size");
  const AdamWScalars with(how);
  const Eigen::ArrayXf g = row(data(grads), 0, count) * with.grad_scale;
  Array p = row(mutable_data(values), 0, count), first = row(mutable_data(m), 0, count),
        second = row(mutable_data(v), 0, count);
  p *= with.decay;
  first += (g - first) * with.one_minus_beta1;
  second = second * with.beta2 + g * g * with.one_minus_beta2;
  p -= with.step_size * (first / (second.sqrt() / with.sqrt_correction2 + with.eps));
  if (with.clear_gradients) row(mutable_data(grads), 0, count).setZero();
}

double ReferenceDevice::sum_of_squares(const Tensor& x) {
  const Tensor wide = widened(x);
  double sum = 0;
  for (std::int64_t i = 0; i < x.count(); ++i) sum += double{data(wide)[i]} * double{data(wide)[i]};
  return sum;
}

bool ReferenceDevice::all_finite(const Tensor& x) {
  const Tensor wide = widened(x);
  return row(data(wide), 0, x.count()).isFinite().all();
}

}  // namespace troupe::engine::ops::cpu::reference

namespace troupe::engine::ops {

std::unique_ptr<Device> make_reference_device() {
  return std::make_unique<cpu::reference::ReferenceDevice>();
}

}  // namespace troupe::engine::ops
