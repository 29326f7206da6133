#include "engine/nn/linear.h"

#include <algorithm>

#include "engine/nn/tensor_parallel.h"

namespace troupe::engine::nn {

Tensor Linear::forward(const Tensor& x, const Pass& pass, Saved& saved) const {
  Tensor y = pass.device.empty({x.shape()[0], weight->value.shape()[0]});  // [T, F]
  weight->multiply(pass.device, x, pass.precision, pass.packed, y);
  finish(x, pass, saved, y);
  return y;
}

void Linear::finish(const Tensor& x, const Pass& pass, Saved& saved, Tensor& y) const {
  if (weight->grad || lora) saved.push(x);
  sum_over(tp, pass.device, y, weight->name);
  if (lora) lora.forward(x, weight->value, pass, tp, saved, y);
  if (bias) pass.device.add_bias(y, bias->value);
}

std::vector<Tensor> forward_together(std::initializer_list<const Linear*> layers, const Tensor& x,
                                     const Pass& pass, Saved& saved) {
  std::vector<ops::GemmCall> products;
  std::vector<Tensor> results;
  products.reserve(layers.size()), results.reserve(layers.size());
  for (const Linear* layer : layers) {
    results.push_back(
        pass.device.empty({x.shape()[0], layer->weight->value.shape()[0]}));  // [T, F]
    products.push_back(layer->weight->product(x, pass.precision, pass.packed, results.back()));
  }
  pass.device.grouped_gemm(products);
  for (std::size_t i = 0; i < layers.size(); ++i)
    layers.begin()[i]->finish(x, pass, saved, results[i]);
  return results;
}

void Linear::backward(const Tensor& dy, const Pass& pass, Saved& saved, Tensor& dx,
                      bool accumulate) const {
  const Lora::Slope slope = lora ? lora.undo(dy, pass, saved) : Lora::Slope{dy, {}};
  pass.device.gemm(slope.dz, weight->value, dx,
                   {.accumulate = accumulate, .precision = pass.precision});
  if (bias && bias->grad) pass.device.bias_backward(dy, bias->grad);
  if (!weight->grad && !lora) return;
  const Tensor x = saved.pop();
  if (weight->grad)
    pass.device.gemm(
        slope.dz, x, weight->grad,
        {.transpose_a = true, .accumulate = weight->adds(), .precision = pass.precision});
  if (lora) lora.backward(x, slope, pass, dx);
}

void backward_together(std::initializer_list<LinearSlope> layers, const Pass& pass, Saved& saved,
                       Tensor& dx) {
  const bool adapted = std::any_of(layers.begin(), layers.end(),
                                   [](const LinearSlope& slope) { return bool{slope.layer.lora}; });
  if (adapted) {  // each adds to dx between the products
    for (const auto& [layer, dy] : layers)
      layer.backward(dy, pass, saved, dx, &layer != &layers.begin()->layer);
    return;
  }
  std::vector<ops::GemmCall> products;
  products.reserve(layers.size());
  for (const auto& [layer, dy] : layers)
    products.push_back({dy,
                        layer.weight->value,
                        dx,
                        {.accumulate = !products.empty(), .precision = pass.precision}});
  pass.device.grouped_gemm(products);
  products.clear();
  for (const auto& [layer, dy] : layers) {
    if (layer.bias && layer.bias->grad) pass.device.bias_backward(dy, layer.bias->grad);
    if (!layer.weight->grad) continue;
    products.push_back(
        {dy,
         saved.pop(),
         layer.weight->grad,
         {.transpose_a = true, .accumulate = layer.weight->adds(), .precision = pass.precision}});
  }
  pass.device.grouped_gemm(products);
}

}  // namespace troupe::engine::nn
