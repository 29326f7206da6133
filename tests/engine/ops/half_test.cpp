// bf16 tensors and products in f16 of every device.
#include <bit>
#include <cmath>
#include <limits>

#include "tests/engine/ops/every_device.h"

namespace troupe::engine::ops {
namespace {

class Half : public OnEveryDevice {
 protected:
  Tensor bf16(Shape shape, const Floats& values) {
    Tensor x = device().empty(shape, DType::bf16);
    device().upload(x, values);
    return x;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Half, testing::ValuesIn(device_cases()), case_name);

/// The nearest value of f16, ties to even, by its definition: 11 bits from 2^-14 on, multiples of
/// 2^-24 below.
float nearest_f16(float x) {
  if (!std::isfinite(x)) return x;
  int exponent = 0;
  std::frexp(static_cast<double>(x), &exponent);
  const double quantum = std::ldexp(1.0, std::max(exponent, -13) - 11);
  const double near = std::nearbyint(static_cast<double>(x) / quantum) * quantum;
  return static_cast<float>(std::abs(near) > 65504 ? std::copysign(INFINITY, x) : near);
}

/// Values of every exponent, halfway between two values of f16, and beside these.
Floats values_of_every_exponent() {
  Floats out{0.0F, -0.0F, 65504, 65519.996F, 65520, 1e9F, std::numeric_limits<float>::infinity()};
  for (int exponent = -30; exponent < 18; ++exponent)
    for (int step = 0; step < 40; ++step) {
      const float tie = std::ldexp(1 + static_cast<float>(step) * 0x1p-11F, exponent);
      for (const float x : {tie, std::nextafter(tie, 0.0F), std::nextafter(tie, INFINITY)})
        out.insert(out.end(), {x, -x});
    }
  return out;
}

TEST_P(Half, CopiesConvertBetweenTheTypes) {
  const Floats x = random_floats(300'007, 1);
  Tensor narrow = device().empty({300'007}, DType::bf16), wide = device().empty({300'007});
  device().copy(put({300'007}, x), narrow);
  EXPECT_EQ(get(narrow), get(bf16({300'007}, x)));
  device().copy(narrow, wide);
  EXPECT_EQ(get(wide), get(narrow));
}

TEST_P(Half, RowsSumsAndChecksOfBf16AreThoseOfWidenedValues) {
  const Tensor table = bf16({40, 1000}, random_floats(40'000, 2));
  const Tensor wide = put({40, 1000}, get(table));
  const Rows rows{3, -1, 39, 3};
  Tensor a = device().empty({4, 1000}), b = device().empty({4, 1000});
  device().gather_rows(table, device().indices(rows), a);
  device().gather_rows(wide, device().indices(rows), b);
  EXPECT_TRUE(same_bits(get(a), get(b)));
  EXPECT_EQ(device().sum_of_squares(table), device().sum_of_squares(wide));
  EXPECT_TRUE(device().all_finite(table));
  for (const float bad : {NAN, -INFINITY}) {
    Floats values = get(table);
    values[31'000] = bad;
    EXPECT_FALSE(device().all_finite(bf16({40, 1000}, values)));
  }
}

// x times the identity is the operand x, rounded.
TEST_P(Half, OperandsInF16AreTheNearestValues) {
  const Floats x = values_of_every_exponent();
  const Tensor one = put({1, 1}, {1});
  Tensor product = device().empty({std::ssize(x), 1});
  device().gemm(put({std::ssize(x), 1}, x), one, product, {.precision = Precision::f16});
  const Floats found = get(product);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(found[i], nearest_f16(x[i])) << x[i];
}

TEST_P(Half, ProductsInF16AreThoseInF32OfRoundedOperands) {
  const std::int64_t m = 70, n = 130, k = 90;
  const auto rounded = [](Floats x) {
    for (float& each : x) each = nearest_f16(each);
    return x;
  };
  const Floats a = random_floats(m * k, 3), b = random_floats(n * k, 4);
  Tensor in_f16 = device().empty({m, n}), in_f32 = device().empty({m, n});
  device().gemm(put({m, k}, a), put({n, k}, b), in_f16,
                {.transpose_b = true, .precision = Precision::f16});
  device().gemm(put({m, k}, rounded(a)), put({n, k}, rounded(b)), in_f32, {.transpose_b = true});
  EXPECT_TRUE(same_bits(get(in_f16), get(in_f32)));
  Tensor first = device().empty({m, n}), second = device().empty({m, n});
  std::vector<GemmCall> calls;
  const Tensor left = put({m, k}, a), right = put({n, k}, b);
  for (const Tensor& to : {first, second})
    calls.push_back({left, right, to, {.transpose_b = true, .precision = Precision::f16}});
  device().grouped_gemm(calls);
  EXPECT_TRUE(same_bits(get(first), get(in_f16)));
  EXPECT_TRUE(same_bits(get(second), get(in_f16)));
}

TEST_P(Half, TheHeadInF16IsThatInF32OfRoundedOperands) {
  const std::int64_t rows = 9, vocabulary = 50, width = 24;
  const Floats hidden = random_floats(rows * width, 5),
               weight = random_floats(vocabulary * width, 6);
  const Rows targets{3, 49, 0, no_target, 7, 8, 9, 10, 11};
  const Tensor up = put({rows}, random_floats(rows, 7));
  const auto both = [&](bool round, Precision precision) {
    Floats h = hidden, w = weight;
    if (round) {
      for (float& each : h) each = nearest_f16(each);
      for (float& each : w) each = nearest_f16(each);
    }
    const Tensor x = put({rows, width}, h), matrix = put({vocabulary, width}, w);
    Tensor logp = device().empty({rows}), lse = device().empty({rows});
    Tensor dx = device().empty({rows, width}), dweight = filled({vocabulary, width}, 0);
    device().head({x, matrix, device().indices(targets), {0.8F}, precision}, {logp, lse});
    device().head_backward({x, matrix, device().indices(targets), {0.8F}, precision}, {lse}, {up},
                           {dx, dweight});
    Floats all = get(logp);
    for (const Tensor& each : {lse, dx, dweight})
      for (const float value : get(each)) all.push_back(value);
    return all;
  };
  EXPECT_TRUE(same_bits(both(false, Precision::f16), both(true, Precision::f32)));
}

}  // namespace
}  // namespace troupe::engine::ops
