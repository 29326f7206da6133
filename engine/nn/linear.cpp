#include "engine/nn/linear.h"

#include <algorithm>

#include "engine/nn/lora_rows.h"
#include "engine/nn/sequence_parallel.h"

namespace troupe::engine::nn {

Tensor Linear::forward(const Tensor& x, const ForwardContext& pass, Saved& saved) const {
  Tensor y = pass.device.empty({x.shape()[0], weight->value.shape()[0]});  // [T, F]
  weight->linear(pass.device, x, pass.precision, pass.packed, y);
  epilogue(x, pass, saved, y);
  return y;
}

void Linear::epilogue(const Tensor& x, const ForwardContext& pass, Saved& saved, Tensor& y) const {
  if (weight->grad || lora) saved.push(x);
  y = sum_rows(pass, tp, y, weight->name);
  if (lora) lora.forward(x, weight->value, pass, tp, saved, y);
  if (pass.lora_rows != nullptr) pass.lora_rows->apply(*weight, x, pass, tp, y);
  if (bias) pass.device.add_bias(y, bias->f32(pass.device));
}

std::vector<Tensor> forward_grouped(std::initializer_list<const Linear*> layers, const Tensor& x,
                                    const ForwardContext& pass, Saved& saved) {
  std::vector<ops::GemmCall> calls;
  std::vector<Tensor> results;
  calls.reserve(layers.size());
  results.reserve(layers.size());
  for (const Linear* layer : layers) {
    results.push_back(
        pass.device.empty({x.shape()[0], layer->weight->value.shape()[0]}));  // [T, F]
    calls.push_back(
        layer->weight->linear_call(pass.device, x, pass.precision, pass.packed, results.back()));
  }
  pass.device.grouped_gemm(calls);
  for (std::size_t i = 0; i < layers.size(); ++i)
    layers.begin()[i]->epilogue(x, pass, saved, results[i]);
  return results;
}

void Linear::add_to_bias(const Tensor& dy, const ForwardContext& pass) const {
  if (!bias || !bias->grad) return;
  GradientSum sum(pass.device, bias->grad);
  pass.device.bias_backward(dy, sum.f32());
  sum.finish();
}

void Linear::backward(const Tensor& doutput, const ForwardContext& pass, Saved& saved, Tensor& dx,
                      bool accumulate) const {
  const Tensor dy = tp != nullptr ? gather_rows(pass, doutput, weight->name) : doutput;
  const Lora::OutputGrad grad =
      lora ? lora.output_backward(dy, pass, saved) : Lora::OutputGrad{dy, {}};
  pass.device.gemm(grad.dz, weight->f32(pass.device), dx,
                   {.accumulate = accumulate, .precision = pass.precision});
  add_to_bias(dy, pass);
  if (!weight->grad && !lora) return;
  const Tensor x = saved.pop();
  if (weight->grad) {
    const bool adds = weight->next_gemm_accumulates();
    GradientSum sum(pass.device, weight->grad, adds);
    pass.device.gemm(grad.dz, x, sum.f32(),
                     {.transpose_a = true, .accumulate = adds, .precision = pass.precision});
    sum.finish();
  }
  if (lora) lora.backward(x, grad, pass, dx);
}

void backward_grouped(std::initializer_list<LinearGrad> layers, const ForwardContext& pass,
                      Saved& saved, Tensor& dx) {
  const bool adapted = std::any_of(layers.begin(), layers.end(),
                                   [](const LinearGrad& grad) { return bool{grad.layer.lora}; });
  if (adapted) {  // adapters add to dx between the GEMMs
    for (const auto& [layer, dy] : layers)
      layer.backward(dy, pass, saved, dx, &layer != &layers.begin()->layer);
    return;
  }
  std::vector<ops::GemmCall> calls;
  calls.reserve(layers.size());
  for (const auto& [layer, dy] : layers)
    calls.push_back({dy,
                     layer.weight->f32(pass.device),
                     dx,
                     {.accumulate = !calls.empty(), .precision = pass.precision}});
  pass.device.grouped_gemm(calls);
  calls.clear();
  std::vector<GradientSum> sums;
  sums.reserve(layers.size());
  for (const auto& [layer, dy] : layers) {
    layer.add_to_bias(dy, pass);
    if (!layer.weight->grad) continue;
    const bool adds = layer.weight->next_gemm_accumulates();
    sums.emplace_back(pass.device, layer.weight->grad, adds);
    calls.push_back({dy,
                     saved.pop(),
                     sums.back().f32(),
                     {.transpose_a = true, .accumulate = adds, .precision = pass.precision}});
  }
  pass.device.grouped_gemm(calls);
  for (GradientSum& sum : sums) sum.finish();
}

}  // namespace troupe::engine::nn
