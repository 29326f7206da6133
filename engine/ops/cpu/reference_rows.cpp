// Norms and activations as their definitions read, in doubles.
#include <Eigen/Core>
#include <cmath>

#include "engine/ops/cpu/access.h"
#include "engine/ops/cpu/reference.h"

namespace troupe::engine::ops {
namespace {

using Array = Eigen::Map<Eigen::ArrayXf>;
using Doubles = Eigen::ArrayXd;

Doubles row(const Tensor& x, std::int64_t t, std::int64_t width) {
  return Eigen::Map<const Eigen::ArrayXf>(in(x) + t * width, width).cast<double>();
}
Doubles all(const Tensor& x) {
  return row(x, 0, x.count());
}
void store(const Doubles& values, Tensor& to, std::int64_t t = 0) {
  Array(out(to) + t * values.size(), values.size()) = values.cast<float>();
}

Doubles error_function(const Doubles& x) {
  return x.unaryExpr([](double value) { return std::erf(value); });
}

/// The activation of x, and how it rises there.
struct Activated {
  Doubles value, slope;
};

Activated activated(Activation activation, const Doubles& x) {
  if (activation == Activation::gelu) {
    const Doubles share = 0.5 * (1 + error_function(x / std::sqrt(2.0)));
    return {x * share, share + x * (-0.5 * x.square()).exp() / std::sqrt(8 * std::atan(1.0))};
  }
  const double rate = std::sqrt(2 / std::atan(1.0)),
               cubic =
                   0.044715;  // gelu's tanh formula is x sigmoid(2 sqrt(2 / pi) (x + cubic x^3))
  const bool tanh = activation == Activation::gelu_tanh;
  const Doubles inner = tanh ? Doubles(rate * (x + cubic * x.cube())) : x;
  const Doubles rise =
      tanh ? Doubles(rate * (1 + 3 * cubic * x.square())) : Doubles::Ones(x.size());
  const Doubles sigmoid = 1 / (1 + (-inner).exp());
  return {x * sigmoid, sigmoid * (1 + x * rise * (1 - sigmoid))};
}

}  // namespace

void ReferenceDevice::rms_norm(const Tensor& x, const Tensor& gain, float eps, Tensor& y,
                               Tensor& inv_rms, float offset) {
  check_norm(x, gain, y, inv_rms);
  const Doubles weight = all(gain) + double{offset};
  for (std::int64_t t = 0; t < rows_of(x); ++t) {
    const Doubles values = row(x, t, weight.size());
    const double inverse = 1 / std::sqrt(values.square().mean() + double{eps});
    out(inv_rms)[t] = static_cast<float>(inverse);
    store(values * inverse * weight, y, t);
  }
}

void ReferenceDevice::rms_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& inv_rms,
                                        const Tensor& dy, Tensor& dx, Tensor& dgain, float offset) {
  check_norm_backward(x, gain, inv_rms, dy, dx, dgain);
  const Doubles weight = all(gain) + double{offset};
  Doubles gain_sum = all(dgain);
  for (std::int64_t t = 0; t < rows_of(x); ++t) {
    const double inverse = in(inv_rms)[t];
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
    out(mean)[t] = static_cast<float>(middle);
    out(inv_std)[t] = static_cast<float>(inverse);
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
    const double inverse = in(inv_std)[t];
    const Doubles normed = (row(x, t, weight.size()) - double{in(mean)[t]}) * inverse,
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
  check(gate.count() == up.count() && gate.count() == dy.count() && gate.count() == dgate.count() &&
            gate.count() == dup.count() && (y == nullptr || gate.count() == y->count()),
        "gated_backward: operands differ in size");
  const Activated of = activated(activation, all(gate));
  const Doubles u = all(up), above = all(dy);
  if (y != nullptr) store(of.value * u, *y);
  store(above * of.value, dup);
  store(above * u * of.slope, dgate);
}

void ReferenceDevice::activate(Activation activation, const Tensor& x, Tensor& y) {
  check(x.count() == y.count(), "activate: operands differ in size");
  store(activated(activation, all(x)).value, y);
}

void ReferenceDevice::activate_backward(Activation activation, const Tensor& x, const Tensor& dy,
                                        Tensor& dx) {
  check(x.count() == dy.count() && x.count() == dx.count(),
        "activate_backward: operands differ in size");
  store(all(dy) * activated(activation, all(x)).slope, dx);
}

}  // namespace troupe::engine::ops
