#include "engine/loss/tape.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "engine/base/errors/check.h"

namespace troupe::engine::loss {

using Array = Eigen::ArrayXd;

struct Node {
  Array value;
  bool scalar = false;
  bool tracked = false;  ///< depends on a variable
  std::vector<std::shared_ptr<const Node>> inputs;
  /// Vector-Jacobian product: given d L / d value, returns d L / d inputs[i], in the shape of the
  /// input. Called for tracked inputs only.
  std::function<Array(std::size_t i, const Array& upstream)> vjp;
};

namespace {

using Vjp = std::function<Array(std::size_t, const Array&)>;

// A node over `inputs`; without a tracked input it is a constant and drops them.
Expr make(Array value, bool scalar, std::vector<Expr> inputs, Vjp vjp) {
  auto node = std::make_shared<Node>();
  node->value = std::move(value);
  node->scalar = scalar;
  for (const auto& input : inputs) node->tracked = node->tracked || input.node().tracked;
  if (node->tracked) {
    for (const auto& input : inputs) node->inputs.push_back(input.shared());
    node->vjp = std::move(vjp);
  }
  return Expr(std::shared_ptr<const Node>(std::move(node)));
}

Expr constant(Array value, bool scalar) {
  return make(std::move(value), scalar, {}, {});
}

template <class T>
Array to_array(const std::vector<T>& values) {
  Array out(static_cast<Eigen::Index>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i)
    out[static_cast<Eigen::Index>(i)] = static_cast<double>(values[i]);
  return out;
}

Array one(double value) {
  return Array::Constant(1, value);
}

// Broadcasts the operand to the result's length.
Array wide(const Node& node, Eigen::Index size) {
  return node.scalar ? Array::Constant(size, node.value[0]) : node.value;
}

// Reduces a gradient of the result's length to the operand's shape.
Array narrow(const Node& node, Array gradient) {
  return node.scalar ? one(gradient.sum()) : std::move(gradient);
}

Eigen::Index common_size(const Expr& a, const Expr& b) {
  if (a.scalar()) return b.node().value.size();
  check(b.scalar() || a.size() == b.size(), "loss tape: arrays of different lengths");
  return a.node().value.size();
}

// value(a, b), and derivative(i, a, b): the derivative by operand i.
template <class Value, class Derivative>
Expr binary(const Expr& a, const Expr& b, Value value, Derivative derivative) {
  const auto size = common_size(a, b);
  const auto vjp = [a, b, size, derivative](std::size_t i, const Array& upstream) {
    return narrow(i == 0 ? a.node() : b.node(),
                  upstream * derivative(i, wide(a.node(), size), wide(b.node(), size)));
  };
  return make(value(wide(a.node(), size), wide(b.node(), size)), a.scalar() && b.scalar(), {a, b},
              vjp);
}

void visit(const Node& node, std::unordered_set<const Node*>& seen,
           std::vector<const Node*>& order) {
  if (!node.tracked || !seen.insert(&node).second) return;
  for (const auto& input : node.inputs) visit(*input, seen, order);
  order.push_back(&node);
}

}  // namespace

Expr::Expr(double value) : Expr(constant(one(value), true)) {
}
Expr::Expr(const std::vector<float>& values) : Expr(constant(to_array(values), false)) {
}
Expr::Expr(const std::vector<double>& values) : Expr(constant(to_array(values), false)) {
}

const Node& Expr::node() const {
  check(node_ != nullptr,
        "loss tape: the loss reads an absent input (entropy or scores missing in Needs?)");
  return *node_;
}

bool Expr::scalar() const {
  return node().scalar;
}
std::size_t Expr::size() const {
  return static_cast<std::size_t>(node().value.size());
}

double Expr::value() const {
  check(scalar(), "loss tape: value() of an array");
  return node().value[0];
}

std::vector<double> Expr::values() const {
  return {node().value.begin(), node().value.end()};
}

Expr variable(const std::vector<double>& values) {
  auto node = std::make_shared<Node>();
  node->value = to_array(values);
  node->tracked = true;
  return Expr(std::shared_ptr<const Node>(std::move(node)));
}

std::vector<std::vector<double>> gradients(const Expr& scalar, std::span<const Expr> variables) {
  check(scalar.scalar(), "loss tape: only a scalar can be differentiated");
  std::vector<const Node*> order;
  std::unordered_set<const Node*> seen;
  visit(scalar.node(), seen, order);
  std::unordered_map<const Node*, Array> upstream;
  if (!order.empty()) upstream[&scalar.node()] = one(1);
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    for (std::size_t i = 0; i < (*node)->inputs.size(); ++i) {
      const Node& input = *(*node)->inputs[i];
      if (!input.tracked) continue;
      Array flow = (*node)->vjp(i, upstream.at(*node));
      const auto [place, first] = upstream.try_emplace(&input, flow);
      if (!first) place->second += flow;
    }
  }
  std::vector<std::vector<double>> out;
  for (const auto& v : variables) {
    const auto found = upstream.find(&v.node());
    if (found == upstream.end())
      out.emplace_back(v.size(), 0.0);
    else
      out.emplace_back(found->second.begin(), found->second.end());
  }
  return out;
}

Expr operator+(const Expr& a, const Expr& b) {
  return binary(
      a, b, [](const Array& x, const Array& y) -> Array { return x + y; },
      [](std::size_t, const Array& x, const Array&) -> Array { return Array::Ones(x.size()); });
}

Expr operator-(const Expr& a, const Expr& b) {
  return binary(
      a, b, [](const Array& x, const Array& y) -> Array { return x - y; },
      [](std::size_t i, const Array& x, const Array&) -> Array {
        return Array::Constant(x.size(), i == 0 ? 1 : -1);
      });
}

Expr operator*(const Expr& a, const Expr& b) {
  return binary(
      a, b, [](const Array& x, const Array& y) -> Array { return x * y; },
      [](std::size_t i, const Array& x, const Array& y) -> Array { return i == 0 ? y : x; });
}

Expr operator/(const Expr& a, const Expr& b) {
  return binary(
      a, b, [](const Array& x, const Array& y) -> Array { return x / y; },
      [](std::size_t i, const Array& x, const Array& y) -> Array {
        return i == 0 ? Array(1 / y) : Array(-x / (y * y));
      });
}

Expr operator-(const Expr& x) {
  return 0.0 - x;
}

namespace {

// The gradient of a tie is PyTorch's: half each.
Array less_weight(const Array& x, const Array& y) {
  return (x < y).select(Array::Ones(x.size()),
                        (x == y).select(Array::Constant(x.size(), 0.5), Array::Zero(x.size())));
}

Expr as_mask(const Expr& a, const Expr& b, bool less) {
  const auto size = common_size(a, b);
  const Array x = wide(a.node(), size), y = wide(b.node(), size);
  return constant(less ? Array((x < y).cast<double>()) : Array((x > y).cast<double>()),
                  a.scalar() && b.scalar());
}

}  // namespace

Expr operator<(const Expr& a, const Expr& b) {
  return as_mask(a, b, true);
}
Expr operator>(const Expr& a, const Expr& b) {
  return as_mask(a, b, false);
}

Expr min(const Expr& a, const Expr& b) {
  return binary(
      a, b,
      [](const Array& x, const Array& y) -> Array { return (x.isNaN() || x < y).select(x, y); },
      [](std::size_t i, const Array& x, const Array& y) -> Array {
        return i == 0 ? less_weight(x, y) : less_weight(y, x);
      });
}

Expr max(const Expr& a, const Expr& b) {
  return -min(-a, -b);
}

// ---- functions of one array, element by element, and sums ----
namespace {

// value(x), and derivative(x, y) with y = value(x).
template <class Value, class Derivative>
Expr unary(const Expr& x, Value value, Derivative derivative) {
  Array y = x.node().value.unaryExpr(value);
  const auto vjp = [x, y, derivative](std::size_t, const Array& upstream) -> Array {
    return upstream * x.node().value.binaryExpr(y, derivative);
  };
  return make(y, x.scalar(), {x}, vjp);
}

// In both branches the argument of exp is <= 0.
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
  const auto vjp = [mask, yes, no](std::size_t i, const Array& upstream) -> Array {
    const Array taken = i == 0 ? Array((mask != 0).select(upstream, 0.0))
                               : Array((mask != 0).select(Array::Zero(mask.size()), upstream));
    return (i == 0 ? yes : no).scalar() ? Array::Constant(1, taken.sum()) : taken;
  };
  return make((mask != 0).select(wide(yes), wide(no)),
              condition.scalar() && yes.scalar() && no.scalar(), {yes, no}, vjp);
}

Expr sum(const Expr& x) {
  const auto size = x.node().value.size();
  // Sequentially: the order of the sum must not depend on how Eigen was compiled.
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

// ---- tokens [T], sequences [N] and pairs [N/2] ----
namespace {

std::vector<std::int32_t> every_second(const Expr& x, std::int32_t first) {
  check(x.size() % 2 == 0, "chosen/rejected: odd number of sequences");
  std::vector<std::int32_t> index;
  for (auto n = first; n < static_cast<std::int32_t>(x.size()); n += 2) index.push_back(n);
  return index;
}

Array sums(const Array& x, const std::vector<std::int32_t>& offsets) {
  check(!offsets.empty() && offsets.back() == x.size(),
        "by sequence: offsets do not cover the array");
  Array out = Array::Zero(static_cast<Eigen::Index>(offsets.size()) - 1);
  for (std::size_t n = 0; n + 1 < offsets.size(); ++n)
    for (auto t = offsets[n]; t < offsets[n + 1]; ++t) out[static_cast<Eigen::Index>(n)] += x[t];
  return out;
}

Array spread_out(const Array& x, const std::vector<std::int32_t>& offsets) {
  check(static_cast<Eigen::Index>(offsets.size()) == x.size() + 1,
        "spread: expected one number per sequence");
  Array out(offsets.back());
  for (std::size_t n = 0; n + 1 < offsets.size(); ++n)
    for (auto t = offsets[n]; t < offsets[n + 1]; ++t) out[t] = x[static_cast<Eigen::Index>(n)];
  return out;
}

}  // namespace

Expr sum_by_sequence(const Expr& x, const std::vector<std::int32_t>& offsets) {
  return make(
      sums(x.node().value, offsets), false, {x},
      [offsets](std::size_t, const Array& upstream) { return spread_out(upstream, offsets); });
}

Expr mean_by_sequence(const Expr& x, const std::vector<float>& mask,
                      const std::vector<std::int32_t>& offsets) {
  const Expr length = max(sum_by_sequence(mask, offsets), 1.0);
  return sum_by_sequence(where(mask, x, 0.0) * mask, offsets) / length;
}

Expr spread(const Expr& x, const std::vector<std::int32_t>& offsets) {
  return make(spread_out(x.node().value, offsets), false, {x},
              [offsets](std::size_t, const Array& upstream) { return sums(upstream, offsets); });
}

Expr gather(const Expr& x, const std::vector<std::int32_t>& index) {
  const Array& from = x.node().value;
  Array out(static_cast<Eigen::Index>(index.size()));
  for (std::size_t i = 0; i < index.size(); ++i) {
    check(0 <= index[i] && index[i] < from.size(), "gather: index out of range");
    out[static_cast<Eigen::Index>(i)] = from[index[i]];
  }
  const auto vjp = [index, size = from.size()](std::size_t, const Array& upstream) -> Array {
    Array back = Array::Zero(size);
    for (std::size_t i = 0; i < index.size(); ++i)
      back[index[i]] += upstream[static_cast<Eigen::Index>(i)];
    return back;
  };
  return make(std::move(out), false, {x}, vjp);
}

Expr chosen(const Expr& x) {
  return gather(x, every_second(x, 0));
}
Expr rejected(const Expr& x) {
  return gather(x, every_second(x, 1));
}

Expr sorted(const Expr& x) {
  std::vector<std::int32_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  const Array& v = x.node().value;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return v[a] < v[b]; });
  return gather(x, order);
}

}  // namespace troupe::engine::loss
