// Int8 weights on every device: their distance to the original weights, and products that equal
// those of the integers, bit for bit, times a scale.
#include <cmath>
#include <limits>

#include "engine/base/errors/check.h"
#include "tests/engine/ops/oracle.h"

namespace troupe::engine::ops {
namespace {

constexpr Gemm in_bf16{.transpose_b = true, .precision = Precision::bf16};

struct Whole {
  Floats numbers, scales;  // [N, K], [N]
};

// Quantization of a weight as device.h defines it.
Whole whole_of(const Floats& weight, std::int64_t n, std::int64_t k) {
  Whole out;
  for (std::int64_t row = 0; row < n; ++row) {
    const Floats values = slice(weight, row * k, (row + 1) * k);
    float largest = 0;
    for (const float value : values) largest = std::max(largest, std::abs(value));
    out.scales.push_back(largest / 127);
    const float factor = 127 / largest;
    for (const float value : values) out.numbers.push_back(std::nearbyint(value * factor));
  }
  return out;
}

class Int8 : public OnEveryDevice {
 protected:
  Tensor packed(const Floats& weight, std::int64_t n, std::int64_t k) {
    Tensor out;
    device().pack(put({n, k}, weight), DType::int8_packed, out);
    return out;
  }
  Floats product(const Floats& a, const Tensor& weight, std::int64_t m, std::int64_t n,
                 std::int64_t k) {
    Tensor c = filled({m, n}, 99);
    device().gemm(put({m, k}, a), weight, c, in_bf16);
    return get(c);
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Int8, testing::ValuesIn(device_cases()), case_name);

struct Int8Sizes {
  int m, n, k;
};
const Int8Sizes odd_int8_sizes[] = {{1, 1, 1},     {1, 37, 130},  {2, 5, 7},      {3, 64, 33},
                                    {4, 9, 512},   {6, 96, 64},   {13, 70, 40},   {14, 33, 31},
                                    {31, 129, 65}, {50, 16, 300}, {100, 100, 90}, {2, 700, 1000}};

TEST_P(Int8, ProductsAreThoseOfTheIntegersTimesTheScales) {
  const bool fast = !GetParam().reference;  // the reference rounds once, at the end
  for (const auto [m, n, k] : odd_int8_sizes) {
    const Floats a = random_floats(m * k, 1), b = random_floats(n * k, 2);
    const Whole whole = whole_of(b, n, k);
    Tensor numbers = filled({m, n}, 0);
    device().gemm(put({m, k}, a), put({n, k}, whole.numbers), numbers, in_bf16);
    device().scale_columns(numbers, put({n}, whole.scales));
    const Floats expected = get(numbers), found = product(a, packed(b, n, k), m, n, k);
    EXPECT_LT(relative_error(found, as_doubles(expected)), 1e-6) << m << " " << n << " " << k;
    EXPECT_TRUE(!fast || same_bits(found, expected)) << m << " " << n << " " << k;
  }
}

TEST_P(Int8, AWeightIsWithinHalfAStep) {
  const std::int64_t n = 40, k = 96;
  const Floats weight = random_floats(n * k, 3);
  Floats ones(k * k, 0.0F);
  for (std::int64_t i = 0; i < k; ++i) ones[static_cast<std::size_t>(i * k + i)] = 1;
  const Floats found = product(ones, packed(weight, n, k), k, n, k);  // [k, n]
  const Whole whole = whole_of(weight, n, k);
  for (std::int64_t i = 0; i < k; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      const double step = whole.scales[static_cast<std::size_t>(j)];
      EXPECT_NEAR(found[static_cast<std::size_t>(i * n + j)],
                  weight[static_cast<std::size_t>(j * k + i)], step * 0.50001);
    }
  }
}

TEST_P(Int8, HalvesGoToEvenAndRowsHaveScalesOfTheirOwn) {
  // The largest value of a row is 127 steps of 1, or of 64; halves are between two steps.
  const Floats weight{127, 0.5F, 1.5F, -2.5F, 8128, 32, 96, -160};
  const Floats expected{127, 0, 2, -2, 8128, 0, 128, -128};
  const Tensor both = packed(weight, 2, 4);
  for (int i = 0; i < 4; ++i) {
    Floats one(4, 0.0F);
    one[static_cast<std::size_t>(i)] = 1;
    EXPECT_EQ(product(one, both, 1, 2, 4), (Floats{expected[static_cast<std::size_t>(i)],
                                                   expected[static_cast<std::size_t>(4 + i)]}));
  }
}

TEST_P(Int8, RowsOfNothingAreZerosAndRowsThatAreNotFiniteStayVisible) {
  const float infinite = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor weight = packed({0, 0, 1e-38F, -1e-38F, 1, nan, infinite, 1, nan, nan, 1, 1}, 6, 2);
  const Floats found = product({1, 1}, weight, 1, 6, 2);
  EXPECT_EQ(slice(found, 0, 2), (Floats{0, 0}));
  for (const std::size_t row : {2, 3, 4}) EXPECT_TRUE(std::isnan(found[row])) << row;
  EXPECT_NEAR(found[5], 2, 1e-6);
}

TEST_P(Int8, OfARowDoNotDependOnTheBatch) {
  const int m = 67, n = 150, k = 1100;
  const Floats a = random_floats(m * k, 3);
  const Tensor weight = packed(random_floats(n * k, 4), n, k);
  const Floats all = product(a, weight, m, n, k);
  for (const int rows : {1, 2, 3, 10, 13, 14, 15, 29, 40})
    EXPECT_TRUE(same_bits(slice(all, (m - rows) * n, m * n),
                          product(slice(a, (m - rows) * k, m * k), weight, rows, n, k)))
        << rows;
}

TEST_P(Int8, AreOfTheirShapeAndKindAlone) {
  Tensor weight = packed(random_floats(320, 1), 40, 8), c = filled({3, 40}, 0),
         wide = filled({3, 80}, 0);
  Gemm adding = in_bf16;
  adding.accumulate = true;
  EXPECT_THROW(device().gemm(filled({3, 8}, 1), weight, c, adding), Bug);
  EXPECT_THROW(device().gemm(filled({3, 8}, 1), weight, c, {.transpose_b = true}), Bug);
  EXPECT_THROW(device().gemm(filled({3, 16}, 1), weight, c, in_bf16), Bug);
  EXPECT_THROW(device().gemm(filled({3, 8}, 1), weight, wide, in_bf16), Bug);
  EXPECT_THROW(device().pack(filled({40, 8}, 1), DType::bf16_packed, weight), Bug);
  EXPECT_THROW(device().pack(filled({80, 8}, 1), DType::int8_packed, weight), Bug);
  Tensor plain;
  EXPECT_THROW(device().pack(filled({40, 8}, 1), DType::f32, plain), Bug);
}

}  // namespace
}  // namespace troupe::engine::ops
