#include "engine/nn/shared_rows.h"

namespace troupe::engine::nn {
namespace {

Tensor gathered(const ForwardContext& pass, const Tensor& from, const ops::Indices& rows) {
  Tensor to = pass.device.empty({std::ssize(rows.host), from.shape()[1]});
  pass.device.gather_rows(from, rows, to);
  return to;
}

}  // namespace

Tensor expand_rows(const ForwardContext& pass, const Tensor& x) {
  return pass.shared == nullptr ? x : gathered(pass, x, pass.shared->inverse);
}

Tensor expand_rows_backward(const ForwardContext& pass, const Tensor& dy) {
  if (pass.shared == nullptr) return dy;
  Tensor dx = pass.device.empty({std::ssize(pass.shared->index.host), dy.shape()[1]});
  pass.device.fill(dx, 0);
  pass.device.scatter_add_rows(dy, pass.shared->inverse, dx);
  return dx;
}

Tensor unique_rows(const ForwardContext& pass, const Tensor& x) {
  return pass.shared == nullptr ? x : gathered(pass, x, pass.shared->index);
}

Tensor unique_rows_backward(const ForwardContext& pass, const Tensor& dy) {
  if (pass.shared == nullptr) return dy;
  const auto& index = pass.shared->index.host;
  std::vector<std::int32_t> rows(pass.shared->inverse.host.size(), -1);  // -1: zeros
  for (std::size_t row = 0; row < index.size(); ++row)
    rows[static_cast<std::size_t>(index[row])] = static_cast<std::int32_t>(row);
  return gathered(pass, dy, pass.device.indices(rows));
}

}  // namespace troupe::engine::nn
