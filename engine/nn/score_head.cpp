#include "engine/nn/score_head.h"

namespace troupe::engine::nn {

Tensor ScoreHead::forward(const Tensor& hidden) const {
  Tensor scores = device->empty({hidden.shape()[0], labels()});  // [M, C]
  device->gemm(hidden, weight->value, scores, {.transpose_b = true});
  if (bias) device->add_bias(scores, bias->value);
  return scores;
}

Tensor ScoreHead::backward(const Tensor& hidden, const Tensor& dscores) const {
  Tensor dhidden = device->empty(hidden.shape());  // [M, D]
  device->gemm(dscores, weight->value, dhidden, {});
  device->gemm(dscores, hidden, weight->grad, {.transpose_a = true, .accumulate = true});
  if (bias) device->bias_backward(dscores, bias->grad);
  return dhidden;
}

}  // namespace troupe::engine::nn
