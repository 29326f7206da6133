// visit_rows_or_throw: Device::visit_rows with visitors that may throw.
#pragma once

#include <algorithm>
#include <exception>
#include <vector>

#include "engine/ops/device.h"
#include "engine/ops/shapes.h"

namespace troupe::engine::ops {

/// Calls visit(i, row i of `from`) for several rows at once. When all are done, rethrows the
/// exception of the first row that threw.
template <class Visit>
void visit_rows_or_throw(Device& device, const Tensor& from, const Visit& visit) {
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(rows_of(from)));
  device.visit_rows(from, [&](std::int64_t row, std::span<const float> values) {
    const auto i = static_cast<std::size_t>(row);
    try {
      visit(i, values);
    } catch (...) {
      thrown[i] = std::current_exception();
    }
  });
  const auto first =
      std::ranges::find_if(thrown, [](const std::exception_ptr& each) { return each != nullptr; });
  if (first != thrown.end()) std::rethrow_exception(*first);
}

}  // namespace troupe::engine::ops
