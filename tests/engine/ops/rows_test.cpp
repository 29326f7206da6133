// Operations on rows, on every device, against their formulas and slopes.
#include <cmath>

#include "tests/engine/ops/oracle.h"

namespace troupe::engine::ops {
namespace {

class RowOps : public OnEveryDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, RowOps, testing::ValuesIn(device_cases()), case_name);

TEST_P(RowOps, RmsNormEqualsItsFormula) {
  for (const int width : {1, 8, 64, 100, 1500}) {
    const int rows = 5;
    const Floats x = random_floats(rows * width, 1), gain = random_floats(width, 2);
    Tensor y = filled({rows, width}, 9), inverse = filled({rows}, 9);
    device().rms_norm(put({rows, width}, x), put({width}, gain), 1e-5F, y, inverse);
    EXPECT_LT(relative_error(get(y), oracle::rms_norm(as_doubles(x), as_doubles(gain), double{1e-5F})), 1e-6) << width;
  }
}

TEST_P(RowOps, RmsNormBackwardIsTheSlopeOfForward) {
  const int rows = 3, width = 21;
  const Floats x = random_floats(rows * width, 1), gain = random_floats(width, 2), above = random_floats(rows * width, 3);
  const Tensor x_at = put({rows, width}, x), gain_at = put({width}, gain), dy = put({rows, width}, above);
  Tensor y = filled({rows, width}, 0), inverse = filled({rows}, 0), dx = filled({rows, width}, 7), dgain = filled({width}, 0.25F);
  device().rms_norm(x_at, gain_at, 1e-5F, y, inverse);
  device().rms_norm_backward(x_at, gain_at, inverse, dy, dx, dgain);
  const Doubles up = as_doubles(above);
  const Doubles by_x =
      oracle::gradient([&](const Doubles& at) { return oracle::dot(oracle::rms_norm(at, as_doubles(gain), 1e-5), up); }, as_doubles(x));
  Doubles by_gain =
      oracle::gradient([&](const Doubles& at) { return oracle::dot(oracle::rms_norm(as_doubles(x), at, 1e-5), up); }, as_doubles(gain));
  for (double& slope : by_gain) slope += 0.25;  // added to what was there
  EXPECT_LT(relative_error(get(dx), by_x), 2e-6);
  EXPECT_LT(relative_error(get(dgain), by_gain), 2e-6);
}

TEST_P(RowOps, SwigluEqualsItsFormulaAndItsSlope) {
  const int count = 333;
  Floats gate = random_floats(count, 1), up = random_floats(count, 2), above = random_floats(count, 3);
  for (int i = 0; i < count; ++i) gate[static_cast<std::size_t>(i)] *= 12;
  const Tensor g = put({count}, gate), u = put({count}, up), dy = put({count}, above);
  Tensor y = filled({count}, 9), dg = filled({count}, 9), du = filled({count}, 9);
  device().gated(Activation::silu, g, u, y);
  device().gated_backward(Activation::silu, g, u, dy, dg, du);
  EXPECT_LT(relative_error(get(y), oracle::swiglu(as_doubles(gate), as_doubles(up))), 5e-7);
  const auto by_gate = [&](const Doubles& at) { return oracle::dot(oracle::swiglu(at, as_doubles(up)), as_doubles(above)); };
  const auto by_up = [&](const Doubles& at) { return oracle::dot(oracle::swiglu(as_doubles(gate), at), as_doubles(above)); };
  EXPECT_LT(relative_error(get(dg), oracle::gradient(by_gate, as_doubles(gate))), 1e-6);
  EXPECT_LT(relative_error(get(du), oracle::gradient(by_up, as_doubles(up))), 1e-6);
}

TEST_P(RowOps, SwigluSurvivesLargeGates) {
  const Tensor g = put({4}, {-200, -90, 90, 1e30F}), u = put({4}, {1, 1, 1, 1});
  Tensor y = filled({4}, 9);
  device().gated(Activation::silu, g, u, y);
  const Floats values = get(y);
  EXPECT_NEAR(values[0], 0, 1e-30);
  EXPECT_NEAR(values[1], 0, 1e-30);
  EXPECT_EQ(values[2], 90);
  EXPECT_EQ(values[3], 1e30F);
}

TEST_P(RowOps, RopeEqualsItsFormulaAndItsInverseUndoesIt) {
  for (const int size : {2, 8, 34, 128}) {
    const int rows = 6, heads = 3, places = 40;
    const Rows positions = {0, 1, 2, 39, 0, 17};
    Floats cos(static_cast<std::size_t>(places * size / 2)), sin(cos.size());
    for (std::size_t i = 0; i < cos.size(); ++i) {
      cos[i] = static_cast<float>(std::cos(0.1 * static_cast<double>(i)));
      sin[i] = static_cast<float>(std::sin(0.1 * static_cast<double>(i)));
    }
    const Floats x = random_floats(rows * heads * size, 5);
    Tensor y = put({rows, heads * size}, x);
    const Tensor c = put({places, size / 2}, cos), s = put({places, size / 2}, sin);
    device().rope(y, positions, c, s, heads, false);
    EXPECT_LT(relative_error(get(y), oracle::rope(as_doubles(x), positions, as_doubles(cos), as_doubles(sin), heads, size)), 2e-7);
    device().rope(y, positions, c, s, heads, true);
    EXPECT_LT(relative_error(get(y), as_doubles(x)), 5e-7);
  }
}

TEST_P(RowOps, BiasesAddAndSumUp) {
  const int rows = 7, width = 45;
  const Floats y = random_floats(rows * width, 1), bias = random_floats(width, 2);
  Tensor sum = put({rows, width}, y), dbias = filled({width}, 1);
  device().add_bias(sum, put({width}, bias));
  device().bias_backward(put({rows, width}, y), dbias);
  Doubles expected = as_doubles(y), columns(static_cast<std::size_t>(width), 1.0);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    columns[i % static_cast<std::size_t>(width)] += expected[i];
    expected[i] += double{bias[i % static_cast<std::size_t>(width)]};
  }
  EXPECT_LT(relative_error(get(sum), expected), 1e-7);
  EXPECT_LT(relative_error(get(dbias), columns), 1e-6);
}

TEST_P(RowOps, AddAndScaleMayWorkInPlace) {
  Tensor x = put({3}, {1, 2, 3});
  device().add(x, put({3}, {10, 20, 30}), x);
  EXPECT_EQ(get(x), (Floats{11, 22, 33}));
  device().scale(x, 0.5F);
  EXPECT_EQ(get(x), (Floats{5.5F, 11, 16.5F}));
}

TEST_P(RowOps, RowsMoveAndNegativeOnesDoNot) {
  const Tensor table = put({3, 2}, {1, 2, 3, 4, 5, 6});
  Tensor some = filled({4, 2}, 9);
  device().gather_rows(table, Rows{2, -1, 0, 2}, some);
  EXPECT_EQ(get(some), (Floats{5, 6, 0, 0, 1, 2, 5, 6}));
  Tensor to = filled({3, 2}, 7);
  device().scatter_rows(some, Rows{1, 0, -1, 2}, to);
  EXPECT_EQ(get(to), (Floats{0, 0, 5, 6, 5, 6}));
  Tensor sums = filled({3, 2}, 1);
  device().scatter_add_rows(some, Rows{1, -1, 1, 0}, sums);
  EXPECT_EQ(get(sums), (Floats{6, 7, 7, 9, 1, 1}));
  EXPECT_THROW(device().gather_rows(table, Rows{3, 0, 0, 0}, some), std::logic_error);
}

TEST_P(RowOps, RmsNormOfARowDoesNotDependOnTheBatch) {
  const int rows = 9, width = 77;
  const Floats x = random_floats(rows * width, 1), gain = random_floats(width, 2);
  Tensor y = filled({rows, width}, 0), inverse = filled({rows}, 0), one = filled({1, width}, 0), one_inverse = filled({1}, 0);
  device().rms_norm(put({rows, width}, x), put({width}, gain), 1e-5F, y, inverse);
  device().rms_norm(put({1, width}, slice(x, 8 * width, 9 * width)), put({width}, gain), 1e-5F, one, one_inverse);
  EXPECT_TRUE(same_bits(slice(get(y), 8 * width, 9 * width), get(one)));
}

}  // namespace
}  // namespace troupe::engine::ops
