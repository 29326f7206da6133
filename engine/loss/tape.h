// The loss tape: reverse-mode automatic differentiation over small host arrays in float64, for
// losses only. It has no device, communicator or weights: inputs are [T] arrays (log-probabilities,
// entropies, values), outputs one scalar and its gradients. Subgradients at kinks are PyTorch's, so
// that loss curves can be compared step by step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace troupe::engine::loss {

struct Node;

/// A handle to a node of the tape: an array [T] (tokens), [N] (sequences), [N/2] (pairs), or a
/// scalar. Cheap to copy. Numbers and columns of an Experience convert to constants, so that
/// `now.logp - b.old_logp` reads as in the paper. Arrays combine with arrays of the same length and
/// with scalars; anything else is a Bug.
class Expr {
 public:
  Expr() = default;
  Expr(double constant);
  Expr(const std::vector<float>& constant);
  Expr(const std::vector<double>& constant);
  explicit Expr(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

  bool empty() const { return node_ == nullptr; }
  bool scalar() const;
  std::size_t size() const;
  double value() const;                ///< value of a scalar
  std::vector<double> values() const;  ///< values of an array; one for a scalar
  const Node& node() const;
  const std::shared_ptr<const Node>& shared() const { return node_; }

 private:
  std::shared_ptr<const Node> node_;
};

/// A leaf with gradients.
Expr variable(const std::vector<double>& values);
/// d scalar / d v for each v of `variables`; zeros where scalar does not depend on v.
std::vector<std::vector<double>> gradients(const Expr& scalar, std::span<const Expr> variables);

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);
Expr operator-(const Expr& x);
/// 1 where true, else 0; constants, for masks and metrics.
Expr operator<(const Expr& a, const Expr& b);
Expr operator>(const Expr& a, const Expr& b);
/// Elementwise; a tie gives each operand half of the gradient.
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);

Expr exp(const Expr& x);
Expr log(const Expr& x);
Expr abs(const Expr& x);
Expr square(const Expr& x);
Expr relu(const Expr& x);
Expr sigmoid(const Expr& x);
Expr log_sigmoid(const Expr& x);  ///< stable: no overflow, no log of 0
Expr softplus(const Expr& x);     ///< log(1 + e^x), stable
Expr log1mexp(const Expr& x);     ///< log(1 - e^x) for x < 0, stable at both ends
/// x clamped to [low, high]; the gradient passes where low <= x <= high. Bounds may be infinite.
Expr clip(const Expr& x, double low, double high);
/// The value of x without gradient (stop-gradient).
Expr detach(const Expr& x);
/// `yes` where condition != 0, else `no`. Elements not selected do not affect value or gradient,
/// not even NaN.
Expr where(const Expr& condition, const Expr& yes, const Expr& no);

Expr sum(const Expr& x);
/// Mean of this array. Not for losses: micro-batches would divide by their own lengths.
Expr mean(const Expr& x);

/// out[n] = sum of x over sequence n; offsets [N+1], x [T].
Expr sum_by_sequence(const Expr& x, const std::vector<std::int32_t>& offsets);
/// out[n] = sum of x * mask over sequence n / max(1, sum of mask): 0 for a sequence without trained
/// tokens, as in TRL.
Expr mean_by_sequence(const Expr& x, const std::vector<float>& mask,
                      const std::vector<std::int32_t>& offsets);
/// [N] -> [T]: broadcasts each sequence's value to its tokens.
Expr spread(const Expr& x, const std::vector<std::int32_t>& offsets);
/// [N] -> [N/2]: the sequences 2k (chosen) and 2k+1 (rejected).
Expr chosen(const Expr& x);
Expr rejected(const Expr& x);
/// out[i] = x[index[i]]; indices may repeat.
Expr gather(const Expr& x, const std::vector<std::int32_t>& index);
/// Sorts in ascending order; gradients follow the permutation.
Expr sorted(const Expr& x);

}  // namespace troupe::engine::loss
