// Matrix products on every device: against the naive loop, and rows bit for bit whatever the batch.
#include "engine/base/errors/check.h"
#include "tests/engine/ops/oracle.h"

namespace troupe::engine::ops {
namespace {

class Products : public OnEveryDevice {
 protected:
  Floats product(const Floats& a, const Floats& b, int m, int n, int k, Gemm how) {
    const Tensor left = how.transpose_a ? put({k, m}, a) : put({m, k}, a);
    const Tensor right = how.transpose_b ? put({n, k}, b) : put({k, n}, b);
    Tensor c = filled({m, n}, how.accumulate ? 0.5F : 99.0F);
    device().gemm(left, right, c, how);
    return get(c);
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Products, testing::ValuesIn(device_cases()), case_name);

struct Sizes {
  int m, n, k;
};
const Sizes odd_sizes[] = {{1, 1, 1},     {1, 8, 16},    {1, 37, 130},  {2, 5, 7},   {3, 64, 33},
                           {4, 9, 512},   {5, 17, 513},  {6, 96, 64},   {7, 3, 100}, {13, 70, 40},
                           {31, 129, 65}, {50, 16, 300}, {64, 300, 600}};

TEST_P(Products, EqualTheNaiveLoop) {
  for (const auto [m, n, k] : odd_sizes) {
    const Floats a = random_floats(m * k, 1), b = random_floats(n * k, 2);
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        const Doubles expected = oracle::gemm(as_doubles(a), as_doubles(b), m, n, k, ta, tb);
        EXPECT_LT(relative_error(product(a, b, m, n, k, {.transpose_a = ta, .transpose_b = tb}),
                                 expected),
                  2e-6)
            << m << " " << n << " " << k << " " << ta << tb;
        Doubles added = expected;
        for (double& x : added) x += 0.5;
        EXPECT_LT(
            relative_error(
                product(a, b, m, n, k, {.transpose_a = ta, .transpose_b = tb, .accumulate = true}),
                added),
            2e-6)
            << m << " " << n << " " << k << " " << ta << tb;
      }
    }
  }
}

Floats rounded(Floats x) {
  for (float& value : x) {
    auto bits = __builtin_bit_cast(std::uint32_t, value);
    const std::uint32_t below = bits & 0xffffU;
    bits &= 0xffff0000U;
    if (below > 0x8000U || (below == 0x8000U && (bits & 0x10000U) != 0)) bits += 0x10000U;
    value = __builtin_bit_cast(float, bits);
  }
  return x;
}

Floats transposed(const Floats& x, int rows, int columns) {
  Floats out(x.size());
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j)
      out[static_cast<std::size_t>(j * rows + i)] = x[static_cast<std::size_t>(i * columns + j)];
  return out;
}

TEST_P(Products, InBf16RoundTheirOperandsAndNothingElse) {
  for (const auto [m, n, k] : odd_sizes) {
    Floats a = random_floats(m * k, 1), b = random_floats(n * k, 2);
    a[0] = __builtin_bit_cast(float, 0x3f808000U);  // a tie, to even: down
    b[0] = __builtin_bit_cast(float, 0x3f818000U);  // a tie, to even: up
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        const Floats bf16 = product(
            a, b, m, n, k, {.transpose_a = ta, .transpose_b = tb, .precision = Precision::bf16});
        // Every product in bf16 is one chain in the order of k, as those in f32 are where b is not
        // transposed.
        const Floats straight = tb ? transposed(b, n, k) : b;
        EXPECT_TRUE(
            same_bits(bf16, product(rounded(a), rounded(straight), m, n, k, {.transpose_a = ta})))
            << m << " " << n << " " << k << " " << ta << tb;
      }
    }
  }
}

TEST_P(Products, OfPackedWeightsHaveTheBitsOfTheWeights) {
  for (const auto [m, n, k] : odd_sizes) {
    const Floats a = random_floats(m * k, 1), b = random_floats(n * k, 2);
    const Tensor x = put({m, k}, a);
    Tensor weight = put({n, k}, random_floats(n * k, 3)), packed;
    device().pack(weight, DType::bf16_packed, packed);
    device().upload(weight, b);
    device().pack(weight, DType::bf16_packed, packed);  // a second time, into the same memory
    for (const bool accumulate : {false, true}) {
      const Gemm how{.transpose_b = true, .accumulate = accumulate, .precision = Precision::bf16};
      Tensor c = filled({m, n}, accumulate ? 0.5F : 99.0F);
      device().gemm(x, packed, c, how);
      EXPECT_TRUE(same_bits(get(c), product(a, b, m, n, k, how))) << m << " " << n << " " << k;
    }
  }
}

TEST_P(Products, OfPackedWeightsAreOfTheirShapeAndInBf16Alone) {
  Tensor packed, c = filled({3, 40}, 0), wide = filled({3, 80}, 0);
  device().pack(filled({40, 8}, 1), DType::bf16_packed, packed);
  const Gemm right{.transpose_b = true, .precision = Precision::bf16};
  EXPECT_THROW(device().gemm(filled({3, 8}, 1), packed, c, {.transpose_b = true}), Bug);
  EXPECT_THROW(device().gemm(filled({3, 8}, 1), packed, c, {.precision = Precision::bf16}), Bug);
  EXPECT_THROW(device().gemm(filled({3, 16}, 1), packed, c, right), Bug);
  EXPECT_THROW(device().gemm(filled({3, 8}, 1), packed, wide, right), Bug);
  EXPECT_THROW(device().pack(filled({80, 8}, 1), DType::bf16_packed, packed), Bug);
}

TEST_P(Products, OfARowDoNotDependOnTheBatch) {
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    for (const bool tb : {false, true}) {
      const int m = 67, n = 150, k = 1100;
      const Floats a = random_floats(m * k, 3), b = random_floats(n * k, 4);
      const Gemm how{.transpose_b = tb, .precision = precision};
      const Floats all = product(a, b, m, n, k, how);
      for (const int rows : {1, 2, 5, 6, 11, 12, 13, 40}) {
        const int first = m - rows;
        EXPECT_TRUE(same_bits(slice(all, first * n, m * n),
                              product(slice(a, first * k, m * k), b, rows, n, k, how)))
            << rows << " " << tb;
      }
    }
  }
}

TEST_P(Products, OfAColumnDoNotDependOnTheOtherColumns) {
  const int m = 20, n = 90, k = 70;
  const Floats a = random_floats(m * k, 3), b = random_floats(n * k, 4);
  const Floats all = product(a, b, m, n, k, {.transpose_b = true});
  const Floats last = product(a, slice(b, (n - 1) * k, n * k), m, 1, k, {.transpose_b = true});
  for (int i = 0; i < m; ++i)
    EXPECT_EQ(all[static_cast<std::size_t>(i * n + n - 1)], last[static_cast<std::size_t>(i)]);
}

TEST_P(Products, OfNothingAreZeros) {
  EXPECT_EQ(product({}, {}, 2, 3, 0, {}), Floats(6, 0.0F));
  EXPECT_EQ(product({}, {}, 2, 3, 0, {.transpose_b = true}), Floats(6, 0.0F));
  EXPECT_EQ(product({}, {}, 2, 3, 0, {.accumulate = true}), Floats(6, 0.5F));
  EXPECT_TRUE(product({}, random_floats(12, 1), 0, 3, 4, {}).empty());
}

TEST_P(Products, WithShapesThatDoNotFitAreABug) {
  const Tensor a = filled({2, 3}, 0), b = filled({4, 5}, 0);
  Tensor c = filled({2, 5}, 0);
  EXPECT_THROW(device().gemm(a, b, c, {}), std::logic_error);
}

}  // namespace
}  // namespace troupe::engine::ops
