// Linear: y = x W^T + b, the weight as Hugging Face stores it, [out, in]; optionally with a LoRA
// adapter.
#pragma once

#include <initializer_list>
#include <vector>

#include "engine/collectives/tensor_group.h"
#include "engine/nn/forward_context.h"
#include "engine/nn/lora.h"
#include "engine/nn/parameters.h"
#include "engine/nn/saved.h"

namespace troupe::engine::nn {

struct Linear {
  Parameter* weight = nullptr;  ///< [F, D]
  Parameter* bias = nullptr;    ///< [F], or nullptr
  /// Row-parallel (Shoeybi et al. 2019): each rank of this group has columns of the weight and of
  /// x, and the outputs are summed.
  collectives::TensorGroup* tp = nullptr;
  Lora lora = {};

  /// x [T, D] -> [T, F]. Saves x.
  Tensor forward(const Tensor& x, const ForwardContext& pass, Saved& saved) const;
  /// Adds the sum over `tp`, the outputs of adapters and the bias to y = x W^T. Saves x.
  void epilogue(const Tensor& x, const ForwardContext& pass, Saved& saved, Tensor& y) const;
  /// dy [T, F]: adds into the gradients of parameters that are not frozen; dx [T, D] is assigned,
  /// or added to with `accumulate`.
  void backward(const Tensor& dy, const ForwardContext& pass, Saved& saved, Tensor& dx,
                bool accumulate) const;
  /// Adds the sum of dy's rows into the gradient of the bias, if it is there and not frozen.
  void add_to_bias(const Tensor& dy, const ForwardContext& pass) const;
};

/// Forward pass of several layers over one input as one grouped GEMM. Results and saved tensors
/// equal those of forward() called for one layer after the other.
std::vector<Tensor> forward_grouped(std::initializer_list<const Linear*> layers, const Tensor& x,
                                    const ForwardContext& pass, Saved& saved);

struct LinearGrad {
  const Linear& layer;
  const Tensor& dy;
};
/// Backward pass of forward_grouped, the last layer first; dx is assigned.
void backward_grouped(std::initializer_list<LinearGrad> layers, const ForwardContext& pass,
                      Saved& saved, Tensor& dx);

}  // namespace troupe::engine::nn
