// The tape's functions of one array, element by element, and its sums. Each is a value and a slope,
// written for one number.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/loss/node.h"

namespace troupe::engine::loss {
namespace {

// value(x), and slope(x, y) with y = value(x).
template <class Value, class Slope>
Expr unary(const Expr& x, Value value, Slope slope) {
  Array y = x.node().value.unaryExpr(value);
  const auto pull = [x, y, slope](std::size_t, const Array& upstream) -> Array {
    return upstream * x.node().value.binaryExpr(y, slope);
  };
  return make(y, x.scalar(), {x}, pull);
}

// Both branches keep the argument of exp at or below 0.
double sigmoid_of(double x) {
  const double e = std::exp(-std::abs(x));
  return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

double softplus_of(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

}  // namespace

Expr exp(const Expr& x) {
  return unary(
      x, [](double v) { return std::exp(v); }, [](double, double y) { return y; });
}

Expr log(const Expr& x) {
  return unary(
      x, [](double v) { return std::log(v); }, [](double v, double) { return 1 / v; });
}

Expr abs(const Expr& x) {
  return unary(
      x, [](double v) { return std::abs(v); },
      [](double v, double) { return v > 0   ? 1.0
                                    : v < 0 ? -1.0
                                            : 0.0; });
}

Expr square(const Expr& x) {
  return unary(
      x, [](double v) { return v * v; }, [](double v, double) { return 2 * v; });
}

Expr relu(const Expr& x) {
  return unary(
      x, [](double v) { return v > 0 || std::isnan(v) ? v : 0.0; },
      [](double v, double) { return v > 0 ? 1.0 : 0.0; });
}

Expr sigmoid(const Expr& x) {
  return unary(x, sigmoid_of, [](double, double y) { return y * (1 - y); });
}

Expr log_sigmoid(const Expr& x) {
  return unary(
      x, [](double v) { return -softplus_of(-v); },
      [](double v, double) { return sigmoid_of(-v); });
}

Expr softplus(const Expr& x) {
  return unary(x, softplus_of, [](double v, double) { return sigmoid_of(v); });
}

Expr log1mexp(const Expr& x) {
  // Mächler 2012: expm1 near 0, log1p far from it.
  const auto value = [](double v) {
    return v > -0.6931471805599453 ? std::log(-std::expm1(v)) : std::log1p(-std::exp(v));
  };
  return unary(x, value, [](double v, double) { return -1 / std::expm1(-v); });
}

Expr clip(const Expr& x, double low, double high) {
  check(low <= high, "clip: the lower bound is above the upper");
  return unary(
      x, [low, high](double v) { return std::isnan(v) ? v : std::clamp(v, low, high); },
      [low, high](double v, double) { return low <= v && v <= high ? 1.0 : 0.0; });
}

Expr detach(const Expr& x) {
  return constant(x.node().value, x.scalar());
}

Expr where(const Expr& condition, const Expr& yes, const Expr& no) {
  const Array mask = condition.node().value;
  const auto size = mask.size();
  const auto wide = [size](const Expr& e) -> Array {
    check(e.scalar() || e.node().value.size() == size, "where: arrays of different lengths");
    return e.scalar() ? Array::Constant(size, e.value()) : e.node().value;
  };
  const auto pull = [mask, yes, no](std::size_t i, const Array& upstream) -> Array {
    const Array taken = i == 0 ? Array((mask != 0).select(upstream, 0.0))
                               : Array((mask != 0).select(Array::Zero(mask.size()), upstream));
    return (i == 0 ? yes : no).scalar() ? Array::Constant(1, taken.sum()) : taken;
  };
  return make((mask != 0).select(wide(yes), wide(no)),
              condition.scalar() && yes.scalar() && no.scalar(), {yes, no}, pull);
}

Expr sum(const Expr& x) {
  const auto size = x.node().value.size();
  // One after the other: the order of a sum must not depend on how Eigen was compiled.
  double total = 0;
  for (const double v : x.node().value) total += v;
  return make(Array::Constant(1, total), true, {x},
              [size](std::size_t, const Array& upstream) -> Array {
                return Array::Constant(size, upstream[0]);
              });
}

Expr mean(const Expr& x) {
  check(x.size() > 0, "mean of an empty array");
  return sum(x) / static_cast<double>(x.size());
}

}  // namespace troupe::engine::loss
