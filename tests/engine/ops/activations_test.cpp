// Activations on every device, plain and gated: compared with their formulas and derivatives, near
// zero and for large arguments.
#include <cmath>

#include "tests/engine/ops/oracle.h"

namespace troupe::engine::ops {
namespace {

constexpr Activation activations[] = {Activation::silu, Activation::gelu, Activation::gelu_tanh,
                                      Activation::relu2};

class Gates : public OnEveryDevice {
 protected:
  static constexpr int count = 333;
  Floats gate = random_floats(count, 1), up = random_floats(count, 2),
         above = random_floats(count, 3);
  Gates() {
    for (float& value : gate) value *= 12;
    for (std::size_t i = 0; i < 100; ++i) gate[i] *= 0.1F;  // where they bend
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Gates, testing::ValuesIn(device_cases()), case_name);

TEST_P(Gates, EqualTheirFormulasAndTheirGradients) {
  for (const Activation how : activations) {
    const Tensor g = put({count}, gate), u = put({count}, up), dy = put({count}, above);
    Tensor y = filled({count}, 9), dg = filled({count}, 9), du = filled({count}, 9);
    device().gated(how, g, u, y);
    device().gated_backward(how, g, u, dy, dg, du, nullptr);
    EXPECT_LT(relative_error(get(y), oracle::gated(how, as_doubles(gate), as_doubles(up))), 5e-7);
    const auto by_gate = [&](const Doubles& at) {
      return oracle::dot(oracle::gated(how, at, as_doubles(up)), as_doubles(above));
    };
    const auto by_up = [&](const Doubles& at) {
      return oracle::dot(oracle::gated(how, as_doubles(gate), at), as_doubles(above));
    };
    EXPECT_LT(relative_error(get(dg), oracle::gradient(by_gate, as_doubles(gate))), 1e-6);
    EXPECT_LT(relative_error(get(du), oracle::gradient(by_up, as_doubles(up))), 1e-6);
    Tensor own_g = put({count}, gate), own_u = put({count}, up), own_dy = put({count}, above);
    device().gated_backward(how, own_g, own_u, own_dy, own_g, own_u,
                            &own_dy);  // in place, and once more forward
    EXPECT_TRUE(same_bits(get(own_g), get(dg)));
    EXPECT_TRUE(same_bits(get(own_u), get(du)));
    EXPECT_TRUE(same_bits(get(own_dy), get(y)));
  }
}

TEST_P(Gates, AloneAreGatesOfOnes) {
  for (const Activation how : activations) {
    const Tensor x = put({count}, gate), ones = filled({count}, 1), dy = put({count}, above);
    Tensor gated = filled({count}, 9), alone = filled({count}, 9), dgated = filled({count}, 9),
           dalone = filled({count}, 9), unused = filled({count}, 9);
    device().gated(how, x, ones, gated);
    device().activate(how, x, alone);
    EXPECT_TRUE(same_bits(get(gated), get(alone)));
    device().gated_backward(how, x, ones, dy, dgated, unused, nullptr);
    device().activate_backward(how, x, dy, dalone);
    EXPECT_LT(relative_error(get(dalone), as_doubles(get(dgated))), 1e-7);
    Tensor own = put({count}, gate), own_dy = put({count}, above);
    device().activate_backward(how, own, own_dy, own_dy);  // in place
    device().activate(how, own, own);
    EXPECT_TRUE(same_bits(get(own), get(alone)));
    EXPECT_TRUE(same_bits(get(own_dy), get(dalone)));
  }
}

TEST_P(Gates, HaveSmallErrorsEverywhere) {  // a few units in the last place of what is added up,
                                            // from the far tail to the far end
  Floats x;
  for (double at = -14; at < 14; at += 0.0037) x.push_back(static_cast<float>(at));
  const auto many = static_cast<std::int64_t>(x.size());
  for (const Activation how : activations) {
    Tensor y = filled({many}, 9);
    device().activate(how, put({many}, x), y);
    const Floats got = get(y);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = oracle::activated(how, double{x[i]});
      ASSERT_NEAR(double{got[i]}, exact,
                  4e-7 * std::abs(exact) + 1e-7 * std::min(1.0, std::abs(double{x[i]})))
          << x[i];
    }
  }
}

TEST_P(Gates, SurviveLargeInputs) {
  for (const Activation how : activations) {
    const Tensor g = put({5}, {-200, -90, 90, 1e30F, 0}), u = put({5}, {1, 1, 1, 1, 1});
    Tensor y = filled({5}, 9), dg = filled({5}, 9), du = filled({5}, 9);
    device().gated(how, g, u, y);
    device().gated_backward(how, g, u, u, dg, du, nullptr);
    const Floats values = get(y), gradient = get(dg);
    EXPECT_NEAR(values[0], 0, 1e-30);
    EXPECT_NEAR(values[1], 0, 1e-30);
    EXPECT_EQ(values[4], 0);
    EXPECT_NEAR(gradient[0], 0, 1e-30);
    const bool squared = how == Activation::relu2;
    EXPECT_EQ(values[2], squared ? 8100 : 90);
    EXPECT_EQ(gradient[2], squared ? 180 : 1);
    EXPECT_EQ(gradient[4], squared ? 0 : 0.5F);
    if (squared) continue;  // 1e60 has no value in f32
    EXPECT_EQ(values[3], 1e30F);
    EXPECT_EQ(gradient[3], 1);
  }
}

TEST_P(Gates, ShowNotANumber) {
  for (const Activation how : activations) {
    Tensor x = put({1}, {__builtin_nanf("")});
    device().activate(how, x, x);
    EXPECT_NE(get(x)[0], get(x)[0]);
  }
}

}  // namespace
}  // namespace troupe::engine::ops
