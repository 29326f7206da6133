#include "engine/nn/shared_rows.h"

namespace troupe::engine::nn {
namespace {

Tensor gathered(const ForwardContext& pass, const Tensor& from,
                std::span<const std::int32_t> rows) {
  Tensor to = pass.device.empty({static_cast<std::int64_t>(rows.size()), from.shape()[1]});
  pass.device.gather_rows(from, rows, to);
  return to;
}

}  // namespace

Tensor expand_rows(const ForwardContext& pass, const Tensor& x) {
  return pass.shared == nullptr ? x : gathered(pass, x, pass.shared->inverse);
}

Tensor expand_rows_backward(const ForwardContext& pass, const Tensor& dy) {
  if (pass.shared == nullptr) return dy;
  Tensor dx =
      pass.device.empty({static_cast<std::int64_t>(pass.shared->index.size()), dy.shape()[1]});
  pass.device.fill(dx, 0);
  pass.device.scatter_add_rows(dy, pass.shared->inverse, dx);
  return dx;
}

Tensor unique_rows(const ForwardContext& pass, const Tensor& x) {
  return pass.shared == nullptr ? x : gathered(pass, x, pass.shared->index);
}

Tensor unique_rows_backward(const ForwardContext& pass, const Tensor& dy) {
  if (pass.shared == nullptr) return dy;
  std::vector<std::int32_t> rows(pass.shared->inverse.size(), -1);  // -1: zeros
  for (std::size_t row = 0; row < pass.shared->index.size(); ++row)
    rows[static_cast<std::size_t>(pass.shared->index[row])] = static_cast<std::int32_t>(row);
  return gathered(pass, dy, rows);
}

}  // namespace troupe::engine::nn
