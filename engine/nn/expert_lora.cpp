#include "engine/nn/expert_lora.h"

#include <algorithm>
#include <memory>

namespace troupe::engine::nn {
namespace {

// Adds dc^T a over the rows of each expert to `sums`.
void add_ragged(const Tensor& dc, const Tensor& a, const ops::Routes& routes,
                const ForwardContext& pass, std::vector<Tensor> sums) {
  const auto adds = std::make_unique<bool[]>(sums.size());
  std::fill_n(adds.get(), sums.size(), true);
  pass.device.ragged_gradients(routes, dc, a, {sums, {adds.get(), sums.size()}}, pass.precision);
}

// Rows first, first + 2, ... of twice as many.
ops::Indices every_second(ops::Device& device, std::int64_t rows, std::int32_t first) {
  std::vector<std::int32_t> out;
  for (std::int32_t i = 0; i < rows; ++i) out.push_back(2 * i + first);
  return device.indices(out);
}

}  // namespace

void ExpertLora::forward(const Tensor& x, const ops::Routes& routes, const ForwardContext& pass,
                         Saved& saved, Tensor& y, bool assigns) const {
  Tensor u = pass.device.empty({x.shape()[0], a.front().shape()[0]});  // [M, R]
  pass.device.ragged_gemm(routes, x, a, u, {.transpose_b = true, .precision = pass.precision});
  pass.device.scale(u, scale);
  pass.device.ragged_gemm(
      routes, u, b, y, {.transpose_b = true, .accumulate = !assigns, .precision = pass.precision});
  saved.push(u);
}

void ExpertLora::backward(const Tensor& dy, const Tensor& x, const ops::Routes& routes,
                          const ForwardContext& pass, Saved& saved, Tensor& dx) const {
  const Tensor u = saved.pop();
  Tensor du = pass.device.empty(u.shape());
  pass.device.ragged_gemm(routes, dy, b, du, {.precision = pass.precision});
  if (!db.empty()) add_ragged(dy, u, routes, pass, db);
  pass.device.scale(du, scale);
  if (!da.empty()) add_ragged(du, x, routes, pass, da);
  pass.device.ragged_gemm(routes, du, a, dx, {.accumulate = true, .precision = pass.precision});
}

void add_halves(const Tensor& both, const ForwardContext& pass, Tensor& first, Tensor& second) {
  const std::int64_t rows = first.shape()[0];
  const Tensor halves = both.view({2 * rows, first.shape()[1]});
  Tensor part = pass.device.empty(first.shape());
  for (Tensor* sum : {&first, &second}) {
    pass.device.gather_rows(halves, every_second(pass.device, rows, sum == &first ? 0 : 1), part);
    pass.device.add(*sum, part, *sum);
  }
}

Tensor join_halves(const Tensor& first, const Tensor& second, const ForwardContext& pass) {
  const std::int64_t rows = first.shape()[0], width = first.shape()[1];
  Tensor halves = pass.device.empty({2 * rows, width});
  pass.device.scatter_rows(first, every_second(pass.device, rows, 0), halves);
  pass.device.scatter_rows(second, every_second(pass.device, rows, 1), halves);
  return halves.view({rows, 2 * width});
}

}  // namespace troupe::engine::nn
