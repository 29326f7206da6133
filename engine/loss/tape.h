// The loss tape: reverse-mode differentiation over small host arrays in float64. Losses, and only
// losses, are written in it. It never sees a device, a communicator or a weight: [T] arrays come in
// (log-probabilities, entropies, values), one scalar and its gradients go out. Sub-gradients at
// kinks are PyTorch's, so that curves can be compared step by step.
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
/// scalar. Cheap to copy. Numbers and columns of an Experience convert to constants, so `now.logp -
/// b.old_logp` is written as in the paper. Arrays combine with arrays of the same length and with
/// scalars; anything else is a Bug.
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
  double value() const;                ///< of a scalar
  std::vector<double> values() const;  ///< of an array (a scalar gives one number)
  const Node& node() const;
  const std::shared_ptr<const Node>& shared() const { return node_; }

 private:
  std::shared_ptr<const Node> node_;
};

/// A leaf that gradients are wanted of.
Expr variable(const std::vector<double>& values);
/// d scalar / d v for each of `variables` (zeros where it does not depend on one).
std::vector<std::vector<double>> gradients(const Expr& scalar, std::span<const Expr> variables);

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);
Expr operator-(const Expr& x);
/// 1 where true, else 0: constants, for masks and for metrics.
Expr operator<(const Expr& a, const Expr& b);
Expr operator>(const Expr& a, const Expr& b);
Expr min(const Expr& a,
         const Expr& b);  ///< element by element; a tie gives each half of the gradient
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
/// x held within [low, high]; the gradient passes where low <= x <= high. Infinite bounds are
/// allowed.
Expr clip(const Expr& x, double low, double high);
/// The value of x without its history (stop-gradient).
Expr detach(const Expr& x);
/// `yes` where condition != 0, else `no`. What is not chosen contributes nothing to value or
/// gradient, not even NaN.
Expr where(const Expr& condition, const Expr& yes, const Expr& no);

Expr sum(const Expr& x);
Expr mean(const Expr& x);  ///< of the array at hand: not for a loss, whose micro-batches would each
                           ///< divide by their own length

/// out[n] = sum of x over sequence n; offsets [N+1], x [T].
Expr sum_by_sequence(const Expr& x, const std::vector<std::int32_t>& offsets);
/// out[n] = sum of x * mask over sequence n / max(1, sum of mask): a sequence without a trained
/// token counts 0, as in TRL.
Expr mean_by_sequence(const Expr& x, const std::vector<float>& mask,
                      const std::vector<std::int32_t>& offsets);
/// [N] -> [T]: each token gets its sequence's number.
Expr spread(const Expr& x, const std::vector<std::int32_t>& offsets);
/// [N] -> [N/2]: the sequences 2k, and 2k+1.
Expr chosen(const Expr& x);
Expr rejected(const Expr& x);
/// out[i] = x[index[i]]; an index may repeat or be left out.
Expr gather(const Expr& x, const std::vector<std::int32_t>& index);
/// Ascending; gradients follow the permutation.
Expr sorted(const Expr& x);

}  // namespace troupe::engine::loss
