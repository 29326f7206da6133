// ExpertLora: the low-rank adapters of one projection of all experts of a
// mixture (Hu et al. 2021, arXiv:2106.09685), as PEFT computes them: y = x
// W_e^T + scale * (x A_e^T) B_e^T over the rows of expert e.
#pragma once

#include <vector>

#include "engine/nn/forward_context.h"
#include "engine/nn/saved.h"

namespace troupe::engine::nn {

struct ExpertLora {
  std::vector<Tensor> a, b;    ///< [E] of [R, D] and [F, R]
  std::vector<Tensor> da, db;  ///< their gradients; empty: they are not trained
  float scale = 1;
  const bool* enabled = nullptr;  ///< shared by the model; false: only the base is computed

  explicit operator bool() const { return !a.empty() && *enabled; }
  std::int64_t outputs() const { return b.front().shape()[0]; }

  /// y [M, F] += the adapter's output for x [M, D], or = with `assigns`. Saves
  /// what backward needs.
  void forward(const Tensor& x, const ops::Routes& routes, const ForwardContext& pass, Saved& saved,
               Tensor& y, bool assigns = false) const;
  /// Adds into the gradients of A and B, and to dx [M, D].
  void backward(const Tensor& dy, const Tensor& x, const ops::Routes& routes,
                const ForwardContext& pass, Saved& saved, Tensor& dx) const;
};

/// Adds the halves of each row of `both` [M, 2F] to `first` and `second` [M,
/// F].
void add_halves(const Tensor& both, const ForwardContext& pass, Tensor& first, Tensor& second);
/// [M, 2F] from `first` and `second`.
Tensor join_halves(const Tensor& first, const Tensor& second, const ForwardContext& pass);

}  // namespace troupe::engine::nn
