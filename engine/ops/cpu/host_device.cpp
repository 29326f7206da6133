#include "engine/ops/cpu/host_device.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "engine/base/random/random.h"
#include "engine/ops/memory/host_buffer.h"
#include "engine/ops/shapes.h"

namespace troupe::engine::ops::cpu {
namespace {

/// Rounds up with the probability of the truncated bits. The largest values stay finite, and values
/// that are bf16 already are unchanged.
float rounded(float value, std::uint32_t random_bits) {
  if (!std::isfinite(value)) return value;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const float up = std::bit_cast<float>((bits + random_bits) & 0xffff0000U);
  return std::isfinite(up) ? up : std::bit_cast<float>(bits & 0xffff0000U);
}

/// Calls store(i, rounded x[i]). Eight elements share a block of random words, half a word each.
template <class Store>
void round_run(const float* x, std::int64_t count, std::uint64_t number,
               const StochasticRounding& how, const Store& store) {
  std::array<std::uint32_t, 4> words{};
  for (std::int64_t i = 0; i < count; ++i, ++number) {
    if (i == 0 || number % 8 == 0)
      words = philox({low_word(number / 8), high_word(number / 8), how.stream, 0x5eedU},
                     {low_word(how.key), high_word(how.key)});
    store(i, rounded(x[i], words[number % 8 / 2] >> (number % 2 * 16) & 0xffffU));
  }
}

}  // namespace

Tensor HostDevice::empty(Shape shape, DType type) {
  std::int64_t count = 1;
  for (int axis = 0; axis < shape.rank(); ++axis)
    check(!__builtin_mul_overflow(count, shape[axis], &count), "Device::empty: the size overflows");
  check(count < (std::int64_t{1} << 56), "Device::empty: the size overflows");
  return {std::make_shared<HostBuffer>(static_cast<std::size_t>(count) * bytes_of(type), blocks_),
          0, shape, type};
}

void HostDevice::upload(Tensor& to, std::span<const float> values) {
  check_host_values("upload", to, values.size());
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
  if (to.dtype() != DType::bf16)
    return source(0, {mutable_data(to), static_cast<std::size_t>(to.count())});
  std::vector<float> values(static_cast<std::size_t>(to.count()));
  source(0, values);
  upload(to, values);
}

void HostDevice::download(const Tensor& from, std::span<float> values) {
  check_host_values("download", from, values.size());
  if (values.empty()) return;
  if (from.dtype() == DType::f32) {
    std::memcpy(values.data(), raw(from), values.size_bytes());
  } else {
    const auto* bits = bf16_data(from);
    std::transform(bits, bits + values.size(), values.begin(), from_bf16);
  }
}

void HostDevice::visit_rows(const Tensor& from, const RowVisitor& visit) {
  const std::int64_t width = width_of(from);
  const float* values = data(from);
  for (std::int64_t row = 0; row < rows_of(from); ++row)
    visit(row, {values + row * width, static_cast<std::size_t>(width)});
}

void HostDevice::fill(Tensor& x, float value) {
  if (x.dtype() == DType::bf16) {
    std::fill_n(reinterpret_cast<std::uint16_t*>(raw(x)), x.count(), to_bf16(value));
    return;
  }
  std::fill_n(mutable_data(x), x.count(), value);
}

void HostDevice::copy(const Tensor& from, Tensor& to) {
  check_same_size("copy", {&from, &to});
  if (from.dtype() != to.dtype()) return convert_range(from, to, 0, from.count());
  if (from.count() > 0) std::memmove(raw(to), raw(from), from.bytes());
}

void HostDevice::gather_rows(const Tensor& from, const Indices& rows, Tensor& to) {
  const std::int64_t width = width_of(from);
  check_moved_rows("gather_rows", to, rows, from);
  float* target = mutable_data(to);
  for (const std::int32_t row : rows.host) {
    if (row < 0) {
      std::fill_n(target, width, 0.0F);
    } else if (from.dtype() == DType::bf16) {
      const auto* source = bf16_data(from) + row * width;
      std::transform(source, source + width, target, from_bf16);
    } else {
      std::copy_n(data(from) + row * width, width, target);
    }
    target += width;
  }
}

void HostDevice::scatter_rows(const Tensor& from, const Indices& rows, Tensor& to) {
  const std::int64_t width = width_of(from);
  check_moved_rows("scatter_rows", from, rows, to);
  const float* source = data(from);
  float* target = mutable_data(to);
  for (const std::int32_t row : rows.host) {
    if (row >= 0) std::copy_n(source, width, target + row * width);
    source += width;
  }
}

void HostDevice::scatter_add_rows(const Tensor& from, const Indices& rows, Tensor& table) {
  const std::int64_t width = width_of(from);
  check_moved_rows("scatter_add_rows", from, rows, table);
  const float* source = data(from);
  float* target = mutable_data(table);
  for (const std::int32_t row : rows.host) {
    if (row >= 0) {
      float* sum = target + row * width;
      for (std::int64_t i = 0; i < width; ++i) sum[i] += source[i];
    }
    source += width;
  }
}

void HostDevice::dropout(const Tensor& x, const Dropout& how, Tensor& y) {
  check_dropout(x, how, y);
  const auto bound = static_cast<std::uint64_t>(how.probability * 0x1.0p32);
  const auto factor = static_cast<float>(1 / (1 - how.probability));
  const std::int64_t width = width_of(x);
  for (std::int64_t t = 0; t < rows_of(x); ++t) {
    const std::uint64_t row = how.rows.host[static_cast<std::size_t>(t)];
    const float* source = data(x) + t * width;
    float* target = mutable_data(y) + t * width;
    std::array<std::uint32_t, 4> words{};
    for (std::int64_t i = 0; i < width; ++i) {
      const auto column = static_cast<std::uint64_t>(how.first_column + i);
      if (i == 0 || column % 4 == 0)
        words = philox({low_word(column / 4), low_word(row), high_word(row), how.stream},
                       {low_word(how.key), high_word(how.key)});
      target[i] = words[column % 4] < bound ? 0.0F : source[i] * factor;
    }
  }
}

void HostDevice::scale_columns(Tensor& x, const Tensor& factors) {
  const std::int64_t width = factors.count();
  check_scale_columns(x, factors);
  const float* factor = data(factors);
  for (std::int64_t t = 0; t < rows_of(x); ++t) {
    float* row = mutable_data(x) + t * width;
    for (std::int64_t i = 0; i < width; ++i) row[i] *= factor[i];
  }
}

void HostDevice::column_dots(const Tensor& a, const Tensor& b, Tensor& sums) {
  const std::int64_t width = sums.count();
  check_column_dots(a, b, sums);
  float* to = mutable_data(sums);
  for (std::int64_t t = 0; t < rows_of(a); ++t) {
    const float *left = data(a) + t * width, *right = data(b) + t * width;
    for (std::int64_t i = 0; i < width; ++i)
      to[i] = static_cast<float>(double{to[i]} + double{left[i]} * double{right[i]});
  }
}

void HostDevice::row_squares(const Tensor& x, Tensor& sums) {
  check_row_squares(x, sums);
  const std::int64_t width = width_of(x);
  for (std::int64_t t = 0; t < rows_of(x); ++t) {
    double sum = 0;
    for (const float* at = data(x) + t * width; at != data(x) + (t + 1) * width; ++at)
      sum += double{*at} * double{*at};
    mutable_data(sums)[t] = static_cast<float>(sum);
  }
}

void HostDevice::round_to_bf16(Tensor& x, const StochasticRounding& how) {
  round_rows(x, how, 0, rows_of(x));
}

void HostDevice::round_rows(Tensor& x, const StochasticRounding& how, std::int64_t begin,
                            std::int64_t end) {
  const std::int64_t width = width_of(x);
  float* values = mutable_data(x);
  for (std::int64_t row = begin; row < end; ++row) {
    float* at = values + row * width;
    round_run(at, width, static_cast<std::uint64_t>(how.first + row * how.ld), how,
              [&](std::int64_t i, float value) { at[i] = value; });
  }
}

void HostDevice::store_bf16(const Tensor& from, Tensor& to, const StochasticRounding& how,
                            const FlatPart& part) {
  store_range(from, to, how, part, 0, from.count());
}

void HostDevice::store_range(const Tensor& from, Tensor& to, const StochasticRounding& how,
                             const FlatPart& part, std::int64_t begin, std::int64_t end) {
  check_store_bf16(from, to, part);
  const float* source = data(from);
  auto* target = reinterpret_cast<std::uint16_t*>(raw(to));
  for (std::int64_t run = 0; begin < end; begin += run) {
    const std::int64_t row = (part.begin + begin) / part.width,
                       column = (part.begin + begin) % part.width;
    run = std::min(end - begin, part.width - column);
    round_run(source + begin, run, static_cast<std::uint64_t>(how.first + row * how.ld + column),
              how, [&](std::int64_t i, float value) { target[begin + i] = to_bf16(value); });
  }
}

void HostDevice::convert_range(const Tensor& from, Tensor& to, std::int64_t begin,
                               std::int64_t end) {
  if (from.dtype() == DType::bf16) {
    const auto* source = bf16_data(from);
    std::transform(source + begin, source + end, mutable_data(to) + begin, from_bf16);
    return;
  }
  check(to.dtype() == DType::bf16, "copy: expected operands of one type, or f32 and bf16");
  const float* source = data(from);
  std::transform(source + begin, source + end, reinterpret_cast<std::uint16_t*>(raw(to)) + begin,
                 to_bf16);
}

Tensor HostDevice::widened(const Tensor& x) {
  if (x.dtype() == DType::f32) return x;
  Tensor wide = empty(x.shape(), DType::f32);
  copy(x, wide);
  return wide;
}

}  // namespace troupe::engine::ops::cpu
