#include "engine/ops/cpu/reference/reference_device.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/ops/cpu/cpu_options.h"
#include "engine/ops/cpu/kernels/kernels.h"
#include "engine/ops/cpu/reference/attention.h"
#include "engine/ops/cpu/reference/lm_head.h"
#include "engine/ops/cpu/reference/operand.h"
#include "engine/ops/memory/host_buffer.h"
#include "engine/ops/shapes.h"
#include "engine/ops/types.h"

namespace troupe::engine::ops::cpu::reference {
namespace {

// Returns NaN unless all values are finite.
float largest_of(const float* x, std::int64_t count) {
  float largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(x[i])) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, std::abs(x[i]));
  }
  return largest;
}

void pack_row(const float* x, std::int64_t count, std::byte* to) {
  const float largest = largest_of(x, count), factor = largest >= 0x1p-100F ? 127 / largest : 0;
  const float scale = largest < 0x1p-100F ? 0 : largest / 127;
  for (std::int64_t i = 0; i < count; ++i)
    to[i] = static_cast<std::byte>(
        factor > 0 ? static_cast<std::int8_t>(std::nearbyint(x[i] * factor)) : 0);
  std::memcpy(to + count, &scale, sizeof(scale));
}

/// Shape of a weight [n, k] packed as `type`: a plain matrix; an int8 row ends with its scale.
Shape packed_shape(DType type, std::int64_t n, std::int64_t k) {
  check(type == DType::bf16_packed || type == DType::int8_packed,
        "pack: a weight is packed in bf16 or int8");
  return type == DType::bf16_packed ? Shape{n, k} : Shape{n, k + 4};
}

// Returns B [N, K].
std::vector<double> right_operand(const Tensor& b, Gemm how, std::int64_t n, std::int64_t k) {
  if (!is_packed(b)) return operand(data(b), n * k, 1, how.precision);
  check(b.shape() == packed_shape(b.dtype(), n, k), "gemm: the packed weight has another shape");
  std::vector<double> values;
  for (std::int64_t row = 0; row < n; ++row) {
    const std::byte* at =
        raw(b) + row * b.shape()[1] * static_cast<std::int64_t>(bytes_of(b.dtype()));
    float scale = 0;
    if (b.dtype() == DType::int8_packed) std::memcpy(&scale, at + k, sizeof(scale));
    for (std::int64_t i = 0; i < k; ++i) {
      if (b.dtype() == DType::int8_packed)
        values.push_back(static_cast<double>(scale) * static_cast<std::int8_t>(at[i]));
      else
        values.push_back(from_bf16(reinterpret_cast<const std::uint16_t*>(at)[i]));
    }
  }
  return values;
}

void pack_weight(const Tensor& weight, Tensor& packed) {
  const std::int64_t rows = rows_of(weight), width = width_of(weight);
  const float* from = data(weight);
  if (packed.dtype() == DType::bf16_packed) {
    std::transform(from, from + weight.count(), reinterpret_cast<std::uint16_t*>(raw(packed)),
                   to_bf16);
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row)
    pack_row(from + row * width, width, raw(packed) + row * packed.shape()[1]);
}

void gemm(const Tensor& a, const Tensor& b, Tensor& c, Gemm how) {
  const auto [m, n, k] = gemm_sizes(a, b, c, how);
  const std::vector<double> right = right_operand(b, how, n, k);
  const std::int64_t b_step = how.transpose_b ? 1 : n;  // between consecutive k
  const std::int64_t b_next = how.transpose_b ? k : 1;  // between consecutive n
  for (std::int64_t i = 0; i < m; ++i) {
    const std::vector<double> left =
        operand(data(a) + (how.transpose_a ? i : i * k), k, how.transpose_a ? m : 1, how.precision);
    float* result = mutable_data(c) + i * n;
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = how.accumulate ? result[j] : 0.0;
      for (std::int64_t l = 0; l < k; ++l)
        sum += left[static_cast<std::size_t>(l)] *
               right[static_cast<std::size_t>(j * b_next + l * b_step)];
      result[j] = static_cast<float>(sum);
    }
  }
}

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
  if (activation == Activation::relu2) return {x.max(0.0).square(), 2 * x.max(0.0)};
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
  check_packed(packed, type, shape);
  pack_weight(weight, packed);
}

void ReferenceDevice::gemm(const Tensor& a, const Tensor& b, Tensor& c, Gemm how) {
  reference::gemm(a, b, c, how);
}

void ReferenceDevice::add_bias(Tensor& y, const Tensor& bias) {
  check_bias("add_bias", y, bias);
  for (std::int64_t t = 0; t < rows_of(y); ++t)
    row(mutable_data(y), t, bias.count()) += row(data(bias), 0, bias.count());
}

void ReferenceDevice::bias_backward(const Tensor& dy, Tensor& dbias) {
  check_bias("bias_backward", dy, dbias);
  Doubles sum = row(data(dbias), 0, dbias.count()).cast<double>();
  for (std::int64_t t = 0; t < rows_of(dy); ++t)
    sum += row(data(dy), t, dbias.count()).cast<double>();
  row(mutable_data(dbias), 0, dbias.count()) = sum.cast<float>();
}

void ReferenceDevice::add(const Tensor& a, const Tensor& b, Tensor& sum) {
  check_same_size("add", {&a, &b, &sum});
  row(mutable_data(sum), 0, sum.count()) = row(data(a), 0, a.count()) + row(data(b), 0, b.count());
}

void ReferenceDevice::scale(Tensor& x, float factor) {
  row(mutable_data(x), 0, x.count()) *= factor;
}

void ReferenceDevice::rope(Tensor& x, const Indices& positions, const Tensor& cos,
                           const Tensor& sin, int heads, bool inverse) {
  check_rope(x, positions, cos, sin, heads);
  const std::int64_t width = width_of(x), size = width / heads, half = size / 2;
  const double sign = inverse ? -1 : 1;
  for (std::size_t t = 0; t < positions.host.size(); ++t) {
    const Doubles c = row(data(cos), positions.host[t], half).cast<double>();
    const Doubles s = row(data(sin), positions.host[t], half).cast<double>() * sign;
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
  check_same_size("gated", {&gate, &up, &y});
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
  check_same_size("activate", {&x, &y});
  store(activated(activation, all(x)).value, y);
}

void ReferenceDevice::activate_backward(Activation activation, const Tensor& x, const Tensor& dy,
                                        Tensor& dx) {
  check_same_size("activate_backward", {&x, &dy, &dx});
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

void ReferenceDevice::token_logprob(const Tensor& logits, const Indices& targets,
                                    float inv_temperature, Tensor& logp, Tensor& lse,
                                    const ColumnMask* columns) {
  check_token_logprob(logits, targets, logp, lse, columns);
  reference::token_logprob(logits, {targets.host, columns}, inv_temperature, logp, lse);
}

void ReferenceDevice::adamw(Tensor& values, Tensor& grads, Tensor& m, Tensor& v, const AdamW& how) {
  check_same_size("adamw", {&values, &grads, &m, &v});
  const std::int64_t count = values.count();
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
