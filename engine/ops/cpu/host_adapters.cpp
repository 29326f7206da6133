// What low-rank adapters ask of a device, once for both CPU devices: dropout and the columns and
// rows of DoRA's magnitudes.
#include <algorithm>
#include <vector>

#include "engine/base/random.h"
#include "engine/ops/cpu/access.h"
#include "engine/ops/cpu/host_device.h"

namespace troupe::engine::ops {

void HostDevice::dropout(const Tensor& x, const Dropout& how, Tensor& y) {
  check(how.probability >= 0 && how.probability < 1, "dropout: a probability in [0, 1)");
  check(rows_of(x) == static_cast<std::int64_t>(how.rows.size()) && x.count() == y.count(),
        "dropout: x, y [T, F], one name a row");
  const auto bound = static_cast<std::uint64_t>(how.probability * 0x1.0p32);
  const auto factor = static_cast<float>(1 / (1 - how.probability));
  const std::int64_t width = width_of(x);
  for (std::int64_t t = 0; t < rows_of(x); ++t) {
    const std::uint64_t row = how.rows[static_cast<std::size_t>(t)];
    const float* source = in(x) + t * width;
    float* target = out(y) + t * width;
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
  check(width_of(x) == width, "scale_columns: x [T, F], factors [F]");
  const float* factor = in(factors);
  for (std::int64_t t = 0; t < rows_of(x); ++t) {
    float* row = out(x) + t * width;
    for (std::int64_t i = 0; i < width; ++i) row[i] *= factor[i];
  }
}

void HostDevice::column_dots(const Tensor& a, const Tensor& b, Tensor& sums) {
  const std::int64_t width = sums.count();
  check(width_of(a) == width && a.count() == b.count(), "column_dots: a, b [T, F], sums [F]");
  std::vector<double> exact(in(sums), in(sums) + width);
  for (std::int64_t t = 0; t < rows_of(a); ++t) {
    const float *left = in(a) + t * width, *right = in(b) + t * width;
    for (std::int64_t i = 0; i < width; ++i)
      exact[static_cast<std::size_t>(i)] += double{left[i]} * double{right[i]};
  }
  std::transform(exact.begin(), exact.end(), out(sums),
                 [](double sum) { return static_cast<float>(sum); });
}

void HostDevice::row_squares(const Tensor& x, Tensor& sums) {
  check(sums.count() == rows_of(x), "row_squares: x [T, F], sums [T]");
  const std::int64_t width = width_of(x);
  for (std::int64_t t = 0; t < rows_of(x); ++t) {
    double sum = 0;
    for (const float* at = in(x) + t * width; at != in(x) + (t + 1) * width; ++at)
      sum += double{*at} * double{*at};
    out(sums)[t] = static_cast<float>(sum);
  }
}

void check_head_adapter(const HeadAdapter* adapter, std::int64_t rows, std::int64_t vocabulary) {
  if (adapter == nullptr) return;
  check(rows_of(adapter->down) == rows && rows_of(adapter->up) == vocabulary &&
            width_of(adapter->down) == width_of(adapter->up),
        "head: its adapter is not [T, R], [V, R]");
}

}  // namespace troupe::engine::ops
