#include "engine/nn/shared_rows.h"

namespace troupe::engine::nn {
namespace {

Tensor gathered(const Pass& pass, const Tensor& from, std::span<const std::int32_t> rows) {
  Tensor to = pass.device.empty({static_cast<std::int64_t>(rows.size()), from.shape()[1]});
  pass.device.gather_rows(from, rows, to);
  return to;
}

}  // namespace

Tensor all_rows(const Pass& pass, const Tensor& x) {
  return pass.shared == nullptr ? x : gathered(pass, x, pass.shared->whole);
}

Tensor all_rows_backward(const Pass& pass, const Tensor& dy) {
  if (pass.shared == nullptr) return dy;
  Tensor dx =
      pass.device.empty({static_cast<std::int64_t>(pass.shared->first.size()), dy.shape()[1]});
  pass.device.fill(dx, 0);
  pass.device.scatter_add_rows(dy, pass.shared->whole, dx);
  return dx;
}

Tensor computed_rows(const Pass& pass, const Tensor& x) {
  return pass.shared == nullptr ? x : gathered(pass, x, pass.shared->first);
}

Tensor computed_rows_backward(const Pass& pass, const Tensor& dy) {
  if (pass.shared == nullptr) return dy;
  std::vector<std::int32_t> rows(pass.shared->whole.size(), -1);  // -1: zeros
  for (std::size_t row = 0; row < pass.shared->first.size(); ++row)
    rows[static_cast<std::size_t>(pass.shared->first[row])] = static_cast<std::int32_t>(row);
  return gathered(pass, dy, rows);
}

}  // namespace troupe::engine::nn
