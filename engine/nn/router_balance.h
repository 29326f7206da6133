// RouterBalance: what balances the routers of a model while it is trained: auxiliary losses, their
// sums over a batch, and capacities. The trainer sets it; mixtures of experts read and add to it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/ops/device.h"

namespace troupe::engine::nn {

/// Sums of one layer over a batch, and the gradient of the losses that depend on all of it.
struct LayerBalance {
  ops::RouterSums sums;
  double sequences = 0;      ///< balance_value() summed over sequences
  double micro_batches = 0;  ///< the same over micro-batches
  /// [E] d(loss)/d(share) in every token, of losses over the batch; empty: none.
  std::vector<double> share_gradients;
};

/// E / (k T^2) * sum over e of favourites[e] * shares[e] (Fedus et al. 2022, arXiv:2101.03961, eq.
/// 4, for k choices): 1 where tokens are spread evenly; 0 without tokens.
double balance_value(const ops::Router& how, const ops::RouterSums& sums);
/// Adds factor * d(balance_value)/d(share), [E].
void add_balance_gradients(const ops::Router& how, const ops::RouterSums& sums, double factor,
                           std::span<double> share_gradients);

struct RouterBalance {
  std::vector<LayerBalance> layers;  ///< [layers of the model]; those without experts are unused
  bool counts = false;               ///< forward passes add to the sums
  bool shares = false;               ///< also those of shares and favourites
  bool by_sequence = false, by_micro_batch = false;  ///< also balance_value() of these
  /// Factors of balance_value() of each sequence and each micro-batch, and of the sum of squares of
  /// the logsumexp, in the loss: backward passes add their gradients.
  double sequence_factor = 0, micro_batch_factor = 0, squares_factor = 0;
  /// An expert has at most ceil(T k / E * capacity) of the choices of T rows; 0: all.
  double capacity = 0;
  ops::DropPolicy drop = ops::DropPolicy::weight;

  /// Drops what exceeds the capacity, and counts.
  void routed(ops::Device& device, const ops::Router& how, const Tensor& logits,
              std::span<const std::int32_t> offsets, std::size_t layer, ops::Routes& routes);
  /// Adds the gradients of the losses to dlogits [T, E].
  void backward(ops::Device& device, const ops::Router& how, const Tensor& logits,
                const ops::Routes& routes, std::span<const std::int32_t> offsets, std::size_t layer,
                Tensor& dlogits) const;
};

/// Forward passes count for its lifetime.
class CountsRoutes {
 public:
  CountsRoutes(RouterBalance& balance, bool counts) : balance_(balance) {
    balance_.counts = counts;
  }
  ~CountsRoutes() { balance_.counts = false; }
  CountsRoutes(const CountsRoutes&) = delete;
  CountsRoutes& operator=(const CountsRoutes&) = delete;

 private:
  RouterBalance& balance_;
};

}  // namespace troupe::engine::nn
