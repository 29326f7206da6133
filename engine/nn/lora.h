// Lora: the low-rank adapter of a Linear whose weight is frozen (Hu et al. 2021, arXiv:2106.09685),
// as PEFT computes it: y = x W^T + scale * dropout(x) A^T B^T, and with a magnitude m (DoRA, Liu et
// al. 2024, arXiv:2402.09353) each output f of that times m_f / |row f of W + scale B A|, the norm
// being a constant in the backward pass.
#pragma once

#include <cstdint>

#include "engine/nn/forward_context.h"
#include "engine/nn/parameters.h"
#include "engine/nn/saved.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::nn {

struct Lora {
  Parameter* a = nullptr;          ///< [R, D]
  Parameter* b = nullptr;          ///< [F, R]
  Parameter* magnitude = nullptr;  ///< [F], or nullptr: no DoRA
  float scale = 1;
  double dropout = 0;        ///< of x, in training passes
  std::uint32_t module = 0;  ///< names this module's draws
  const bool* on = nullptr;  ///< of the whole model: false answers as the base alone does

  explicit operator bool() const { return a != nullptr && *on; }

  /// scale * dropout(x) A^T, [T, R], summed over the ranks of `tp` that have columns of x and A.
  Tensor down(const Tensor& x, const Pass& pass, parallel::Communicator* tp) const;
  /// y [T, F], which is x W^T, becomes the adapted one. Leaves what backward wants. `weight` [F, D]
  /// is W.
  void forward(const Tensor& x, const Tensor& weight, const Pass& pass, parallel::Communicator* tp,
               Saved& saved, Tensor& y) const;
  /// What forward left, and the gradient of x W^T + scale * dropout(x) A^T B^T from that of the
  /// adapted y.
  struct Slope {
    Tensor dz, down;
  };
  Slope undo(const Tensor& dy, const Pass& pass, Saved& saved) const;
  /// Adds into the gradients of A and B, and to dx [T, D].
  void backward(const Tensor& x, const Slope& slope, const Pass& pass, Tensor& dx) const;
  /// The same from the gradient of down() on, [T, R], which it changes.
  void below(const Tensor& x, Tensor& ddown, const Pass& pass, Tensor& dx) const;

 private:
  const Tensor& dropped(const Tensor& x, const Pass& pass, Tensor& room) const;
  Tensor inverse_norms(const Tensor& weight, const Pass& pass, parallel::Communicator* tp) const;
};

}  // namespace troupe::engine::nn
