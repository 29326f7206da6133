#include "engine/ops/cpu/host_device.h"

#include <algorithm>
#include <cstring>

#include "engine/ops/cpu/access.h"

namespace troupe::engine::ops {

Tensor HostDevice::empty(Shape shape, DType type) {
  std::int64_t count = 1;
  for (int axis = 0; axis < shape.rank(); ++axis)
    check(!__builtin_mul_overflow(count, shape[axis], &count), "Device::empty: the size overflows");
  check(count < (std::int64_t{1} << 56), "Device::empty: the size overflows");
  return {std::make_shared<HostBuffer>(static_cast<std::size_t>(count) * bytes_of(type), blocks_),
          0, shape, type};
}

void HostDevice::upload(Tensor& to, std::span<const float> values) {
  check(to.count() == static_cast<std::int64_t>(values.size()), "upload: another number of values");
  if (values.empty()) return;
  if (to.dtype() == DType::f32) {
    std::memcpy(raw(to), values.data(), values.size_bytes());
  } else {
    check(to.dtype() == DType::bf16, "upload: floats into integers");
    std::transform(values.begin(), values.end(), reinterpret_cast<std::uint16_t*>(raw(to)),
                   to_bf16);
  }
}

void HostDevice::upload_from(Tensor& to, const Source& source) {
  source(0, {out(to), static_cast<std::size_t>(to.count())});
}

void HostDevice::download(const Tensor& from, std::span<float> values) {
  check(from.count() == static_cast<std::int64_t>(values.size()),
        "download: another number of values");
  if (values.empty()) return;
  if (from.dtype() == DType::f32) {
    std::memcpy(values.data(), raw(from), values.size_bytes());
  } else {
    check(from.dtype() == DType::bf16, "download: integers as floats");
    const auto* bits = reinterpret_cast<const std::uint16_t*>(raw(from));
    std::transform(bits, bits + values.size(), values.begin(), from_bf16);
  }
}

void HostDevice::visit_rows(const Tensor& from, const RowVisitor& visit) {
  const std::int64_t width = width_of(from);
  const float* values = in(from);
  for (std::int64_t row = 0; row < rows_of(from); ++row)
    visit(row, {values + row * width, static_cast<std::size_t>(width)});
}

void HostDevice::fill(Tensor& x, float value) {
  std::fill_n(out(x), x.count(), value);
}

void HostDevice::copy(const Tensor& from, Tensor& to) {
  check(from.count() == to.count() && from.dtype() == to.dtype(),
        "copy: operands differ in size or type");
  if (from.count() > 0) std::memmove(raw(to), raw(from), from.bytes());
}

void HostDevice::gather_rows(const Tensor& from, std::span<const std::int32_t> rows, Tensor& to) {
  const std::int64_t width = width_of(from);
  check_moved_rows("gather_rows", to, rows, from);
  const float* source = in(from);
  float* target = out(to);
  for (const std::int32_t row : rows) {
    if (row < 0) {
      std::fill_n(target, width, 0.0F);
    } else {
      std::copy_n(source + row * width, width, target);
    }
    target += width;
  }
}

void HostDevice::scatter_rows(const Tensor& from, std::span<const std::int32_t> rows, Tensor& to) {
  const std::int64_t width = width_of(from);
  check_moved_rows("scatter_rows", from, rows, to);
  const float* source = in(from);
  float* target = out(to);
  for (const std::int32_t row : rows) {
    if (row >= 0) std::copy_n(source, width, target + row * width);
    source += width;
  }
}

void HostDevice::scatter_add_rows(const Tensor& from, std::span<const std::int32_t> rows,
                                  Tensor& table) {
  const std::int64_t width = width_of(from);
  check_moved_rows("scatter_add_rows", from, rows, table);
  const float* source = in(from);
  float* target = out(table);
  for (const std::int32_t row : rows) {
    if (row >= 0) {
      float* sum = target + row * width;
      for (std::int64_t i = 0; i < width; ++i) sum[i] += source[i];
    }
    source += width;
  }
}

}  // namespace troupe::engine::ops
