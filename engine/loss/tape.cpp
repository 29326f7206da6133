// The tape's core: nodes, arithmetic with scalars and arrays, and the reverse sweep.
#include "engine/loss/tape.h"

#include <unordered_map>
#include <unordered_set>

#include "engine/loss/node.h"

namespace troupe::engine::loss {
namespace {

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

// The operand at the result's length.
Array wide(const Node& node, Eigen::Index size) {
  return node.scalar ? Array::Constant(size, node.value[0]) : node.value;
}

// A gradient of the result's length, brought back to the operand's shape.
Array narrow(const Node& node, Array gradient) {
  return node.scalar ? one(gradient.sum()) : std::move(gradient);
}

Eigen::Index common_size(const Expr& a, const Expr& b) {
  if (a.scalar()) return b.node().value.size();
  check(b.scalar() || a.size() == b.size(), "loss tape: arrays of different lengths are combined");
  return a.node().value.size();
}

// value(a, b), and slope(i, a, b): the derivative by operand i.
template <class Value, class Slope>
Expr binary(const Expr& a, const Expr& b, Value value, Slope slope) {
  const auto size = common_size(a, b);
  const auto pull = [a, b, size, slope](std::size_t i, const Array& upstream) {
    return narrow(i == 0 ? a.node() : b.node(),
                  upstream * slope(i, wide(a.node(), size), wide(b.node(), size)));
  };
  return make(value(wide(a.node(), size), wide(b.node(), size)), a.scalar() && b.scalar(), {a, b},
              pull);
}

void visit(const Node& node, std::unordered_set<const Node*>& seen,
           std::vector<const Node*>& order) {
  if (!node.tracked || !seen.insert(&node).second) return;
  for (const auto& input : node.inputs) visit(*input, seen, order);
  order.push_back(&node);
}

}  // namespace

Expr make(Array value, bool scalar, std::vector<Expr> inputs, Pull pull) {
  auto node = std::make_shared<Node>();
  node->value = std::move(value);
  node->scalar = scalar;
  for (const auto& input : inputs) node->tracked = node->tracked || input.node().tracked;
  if (node->tracked) {
    for (const auto& input : inputs) node->inputs.push_back(input.shared());
    node->pull = std::move(pull);
  }
  return Expr(std::shared_ptr<const Node>(std::move(node)));
}

Expr::Expr(double value) : Expr(constant(one(value), true)) {
}
Expr::Expr(const std::vector<float>& values) : Expr(constant(to_array(values), false)) {
}
Expr::Expr(const std::vector<double>& values) : Expr(constant(to_array(values), false)) {
}

const Node& Expr::node() const {
  check(node_ != nullptr,
        "loss tape: a quantity that the loss reads is not there (entropy or value not asked for?)");
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
      Array flow = (*node)->pull(i, upstream.at(*node));
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

// The share of a tie's gradient is PyTorch's: half each.
Array less_share(const Array& x, const Array& y) {
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
        return i == 0 ? less_share(x, y) : less_share(y, x);
      });
}

Expr max(const Expr& a, const Expr& b) {
  return -min(-a, -b);
}

}  // namespace troupe::engine::loss
