// Linear: y = x W^T + b, the weight as Hugging Face stores it, [out, in]; perhaps with an adapter.
#pragma once

#include <initializer_list>
#include <vector>

#include "engine/nn/forward_context.h"
#include "engine/nn/lora.h"
#include "engine/nn/parameters.h"
#include "engine/nn/saved.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::nn {

struct Linear {
  Parameter* weight = nullptr;  ///< [F, D]
  Parameter* bias = nullptr;    ///< [F], or nullptr
  /// Row-parallel (Shoeybi et al. 2019): each rank of this group has columns of the weight and of
  /// x, and the outputs are their sum.
  parallel::Communicator* tp = nullptr;
  Lora lora = {};

  /// x [T, D] -> [T, F]. Leaves x.
  Tensor forward(const Tensor& x, const Pass& pass, Saved& saved) const;
  /// dy [T, F]: adds into the gradients of what is not frozen; dx [T, D] is assigned, or added to
  /// with `accumulate`.
  void backward(const Tensor& dy, const Pass& pass, Saved& saved, Tensor& dx,
                bool accumulate) const;

 private:
  friend std::vector<Tensor> forward_together(std::initializer_list<const Linear*>, const Tensor&,
                                              const Pass&, Saved&);
  /// What comes after the product.
  void finish(const Tensor& x, const Pass& pass, Saved& saved, Tensor& y) const;
};

/// Layers of one input, which then is read once for all of their products: what forward() of one
/// after the other gives and saves.
std::vector<Tensor> forward_together(std::initializer_list<const Linear*> layers, const Tensor& x,
                                     const Pass& pass, Saved& saved);

struct LinearSlope {
  const Linear& layer;
  const Tensor& dy;
};
/// The same of backward(), the last layer first; dx is assigned.
void backward_together(std::initializer_list<LinearSlope> layers, const Pass& pass, Saved& saved,
                       Tensor& dx);

}  // namespace troupe::engine::nn
