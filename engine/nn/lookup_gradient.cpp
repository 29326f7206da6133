#include "engine/nn/lookup_gradient.h"

#include <algorithm>

namespace troupe::engine::nn {

LookupGradient::LookupGradient(ops::Device& device, const Shape& shape)
    : device_(device),
      sum_(device.empty(shape)),
      has_sum_(static_cast<std::size_t>(shape[0]), std::uint8_t{0}) {
}

void LookupGradient::add(const Tensor& from, std::span<const std::int32_t> rows) {
  std::vector<std::int32_t> first(rows.begin(), rows.end()), later(rows.begin(), rows.end());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0) continue;
    std::uint8_t& known = has_sum_[static_cast<std::size_t>(rows[i])];
    (known ? first : later)[i] = -1;
    if (!known) rows_.push_back(rows[i]);
    known = 1;
  }
  device_.scatter_rows(from, device_.indices(first), sum_);
  device_.scatter_add_rows(from, device_.indices(later), sum_);
}

void LookupGradient::move_to(Tensor& grad) {
  constexpr std::size_t at_once = 1024;  // bounds the memory of the copies
  for (std::size_t begin = 0; begin < rows_.size(); begin += at_once) {
    const auto rows =
        device_.indices(std::span(rows_).subspan(begin, std::min(at_once, rows_.size() - begin)));
    Tensor part = device_.empty({std::ssize(rows.host), sum_.shape()[1]});
    device_.gather_rows(sum_, rows, part);
    device_.scatter_add_rows(part, rows, grad);
  }
  for (const auto row : rows_) has_sum_[static_cast<std::size_t>(row)] = 0;
  rows_.clear();
}

}  // namespace troupe::engine::nn
