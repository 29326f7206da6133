// Lora: the low-rank adapter of a Linear whose weight is frozen (Hu et al. 2021, arXiv:2106.09685),
// as PEFT computes it: y = x W^T + scale * dropout(x) A^T B^T. With a magnitude m (DoRA, Liu et al.
// 2024, arXiv:2402.09353) each output f is multiplied by m_f / |row f of W + scale B A|; the norm
// is a constant in the backward pass.
#pragma once

#include <cstdint>

#include "engine/collectives/tensor_group.h"
#include "engine/nn/forward_context.h"
#include "engine/nn/parameters.h"
#include "engine/nn/saved.h"

namespace troupe::engine::nn {

struct Lora {
  Parameter* a = nullptr;          ///< [R, D]
  Parameter* b = nullptr;          ///< [F, R]
  Parameter* magnitude = nullptr;  ///< [F], or nullptr: no DoRA
  float scale = 1;
  double dropout = 0;             ///< probability, on x, in training passes
  std::uint32_t module = 0;       ///< random stream of this module's dropout
  const bool* enabled = nullptr;  ///< shared by the model; false: only the base is computed

  explicit operator bool() const { return a != nullptr && *enabled; }

  /// scale * dropout(x) A^T, [T, R], summed over the ranks of `tp` that have columns of x and A.
  Tensor down_project(const Tensor& x, const ForwardContext& pass,
                      collectives::TensorGroup* tp) const;
  /// Turns y = x W^T [T, F] into the adapted output. Saves what backward needs. `weight` [F, D] is
  /// W.
  void forward(const Tensor& x, const Tensor& weight, const ForwardContext& pass,
               collectives::TensorGroup* tp, Saved& saved, Tensor& y) const;
  /// Gradient of x W^T + scale * dropout(x) A^T B^T, and the down-projection that forward saved.
  struct OutputGrad {
    Tensor dz, down;
  };
  /// Backward pass of the magnitude: dz from the gradient of the adapted y.
  OutputGrad output_backward(const Tensor& dy, const ForwardContext& pass, Saved& saved) const;
  /// Adds into the gradients of A and B, and to dx [T, D].
  void backward(const Tensor& x, const OutputGrad& grad, const ForwardContext& pass,
                Tensor& dx) const;
  /// Backward pass of down_project: adds into the gradient of A and to dx. Overwrites ddown [T, R].
  void down_backward(const Tensor& x, Tensor& ddown, const ForwardContext& pass, Tensor& dx) const;

 private:
  const Tensor& dropped(const Tensor& x, const ForwardContext& pass, Tensor& storage) const;
  Tensor inverse_norms(const Tensor& weight, const ForwardContext& pass,
                       collectives::TensorGroup* tp) const;
};

}  // namespace troupe::engine::nn
