// The optimizer's operations on every device.
#include <cmath>
#include <limits>

#include "tests/engine/ops/oracle.h"

namespace troupe::engine::ops {
namespace {

class Optimizer : public OnEveryDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Optimizer, testing::ValuesIn(device_cases()), case_name);

TEST_P(Optimizer, AdamWFollowsAlgorithm2) {
  const int count = 37;
  AdamW how{.learning_rate = 1e-2,
            .beta1 = 0.9,
            .beta2 = 0.95,
            .eps = 1e-8,
            .weight_decay = 0.1,
            .step = 1,
            .grad_scale = 0.5F};
  Tensor p = put({count}, random_floats(count, 1)), m = filled({count}, 0), v = filled({count}, 0);
  Doubles values = as_doubles(random_floats(count, 1)), first(values.size()), second(values.size());
  for (; how.step <= 4; ++how.step) {
    const Floats g = random_floats(count, static_cast<std::uint64_t>(10 + how.step));
    Tensor grads = put({count}, g);
    device().adamw(p, grads, m, v, how);
    EXPECT_TRUE(same_bits(get(grads), g));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double derivative = 0.5 * double{g[i]}, t = static_cast<double>(how.step);
      first[i] = how.beta1 * first[i] + (1 - how.beta1) * derivative;
      second[i] = how.beta2 * second[i] + (1 - how.beta2) * derivative * derivative;
      values[i] -= how.learning_rate * how.weight_decay * values[i];
      const double unbiased = first[i] / (1 - std::pow(how.beta1, t));
      values[i] -= how.learning_rate * unbiased /
                   (std::sqrt(second[i] / (1 - std::pow(how.beta2, t))) + how.eps);
    }
  }
  EXPECT_LT(relative_error(get(p), values), 5e-7);
  EXPECT_LT(relative_error(get(m), first), 5e-7);
  EXPECT_LT(relative_error(get(v), second), 5e-7);
}

TEST_P(Optimizer, AdamWOfARangeHasTheBitsOfTheWhole) {
  const AdamW how{.learning_rate = 1e-2, .weight_decay = 0.1};
  const int count = 300;
  const Floats start = random_floats(count, 1), g = random_floats(count, 2);
  Tensor p = put({count}, start), m = filled({count}, 0), v = filled({count}, 0),
         grads = put({count}, g);
  device().adamw(p, grads, m, v, how);
  Tensor part = put({100}, slice(start, 101, 201)), part_m = filled({100}, 0),
         part_v = filled({100}, 0);
  Tensor part_grads = put({100}, slice(g, 101, 201));
  device().adamw(part, part_grads, part_m, part_v, how);
  EXPECT_TRUE(same_bits(get(part), slice(get(p), 101, 201)));
}

TEST_P(Optimizer, ClearingTheGradientsInTheSamePassChangesNoOtherBit) {
  AdamW how{.learning_rate = 1e-2, .weight_decay = 0.1, .step = 5, .grad_scale = 0.3F};
  const int count = 70'003;
  const Floats start = random_floats(count, 1), g = random_floats(count, 2),
               moment = random_floats(count, 3);
  Floats results[2][4];
  for (const bool clear : {false, true}) {
    how.clear_gradients = clear;
    Tensor p = put({count}, start), grads = put({count}, g), m = put({count}, moment),
           v = filled({count}, 0.25F);
    device().adamw(p, grads, m, v, how);
    Floats* found = results[clear ? 1 : 0];
    found[0] = get(p);
    found[1] = get(m);
    found[2] = get(v);
    found[3] = get(grads);
  }
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(results[0][i], results[1][i])) << i;
  EXPECT_TRUE(same_bits(results[0][3], g));
  EXPECT_TRUE(same_bits(results[1][3], Floats(count, 0.0F)));
}

TEST_P(Optimizer, SumOfSquaresIsADouble) {
  for (const int count : {0, 1, 17, 40000}) {
    const Floats x = random_floats(count, 3);
    EXPECT_NEAR(device().sum_of_squares(put({count}, x)), oracle::dot(as_doubles(x), as_doubles(x)),
                1e-9 * (1 + count));
  }
  EXPECT_DOUBLE_EQ(device().sum_of_squares(put({2}, {3e30F, 4e30F})),
                   double{3e30F} * double{3e30F} + double{4e30F} * double{4e30F});
}

TEST_P(Optimizer, AllFiniteFindsWhatIsNot) {
  Floats x = random_floats(5000, 1);
  EXPECT_TRUE(device().all_finite(put({5000}, x)));
  for (const float bad : {std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(), __builtin_nanf("")}) {
    x[4999] = bad;
    EXPECT_FALSE(device().all_finite(put({5000}, x)));
  }
}

constexpr StochasticRounding by_chance{.key = 5, .stream = 2, .first = 0, .ld = 300};

TEST_P(Optimizer, StochasticRoundingGivesTheNeighboursInBf16AndKeepsTheMean) {
  const int count = 20'000;
  const float low = 1, step = 0x1p-7F, value = low + 0.3F * step;
  Tensor x = filled({count / 100, 100}, value);
  StochasticRounding how = by_chance;
  how.ld = 100;
  device().round_to_bf16(x, how);
  double ups = 0;
  for (const float found : get(x)) {
    ASSERT_TRUE(found == low || found == low + step) << found;
    ups += found == low ? 0 : 1;
  }
  EXPECT_NEAR(ups / count, 0.3, 4 * std::sqrt(0.3 * 0.7 / count));
}

TEST_P(Optimizer, StochasticRoundingLeavesBf16AndWhatIsNotFinite) {
  const float infinite = std::numeric_limits<float>::infinity(),
              maximum = __builtin_bit_cast(float, 0x7f7fffffU);
  const Floats values{0,         -0.0F,         1.5F,    -0x1.02p-100F, infinite,
                      -infinite, std::nanf(""), maximum, -maximum};
  Tensor x = put({9}, values);
  device().round_to_bf16(x, by_chance);
  const Floats found = get(x);
  EXPECT_TRUE(same_bits(slice(found, 0, 6), slice(values, 0, 6)));
  EXPECT_TRUE(std::isnan(found[6]));
  for (const std::size_t i : {7, 8})
    EXPECT_TRUE(std::isfinite(found[i]) &&
                std::abs(found[i]) == __builtin_bit_cast(float, 0x7f7f0000U));
}

TEST_P(Optimizer, AnElementsChanceIsOfItsPlaceInTheWholeAlone) {
  const int rows = 70, columns = 300;
  const Floats start = random_floats(rows * columns, 4);
  Tensor whole = put({rows, columns}, start);
  device().round_to_bf16(whole, by_chance);
  const Floats all = get(whole);
  Tensor lower =
      put({30, columns}, slice(start, 40 * columns, rows * columns));  // the last 30 rows
  StochasticRounding how = by_chance;
  how.first = 40 * columns;
  device().round_to_bf16(lower, how);
  EXPECT_TRUE(same_bits(get(lower), slice(all, 40 * columns, rows * columns)));
  Floats right, expected;  // 99 columns from 101 on
  for (int i = 0; i < rows; ++i) {
    const Floats from = slice(start, i * columns + 101, i * columns + 200),
                 to = slice(all, i * columns + 101, i * columns + 200);
    right.insert(right.end(), from.begin(), from.end());
    expected.insert(expected.end(), to.begin(), to.end());
  }
  Tensor part = put({rows, 99}, right);
  how.first = 101;
  device().round_to_bf16(part, how);
  EXPECT_TRUE(same_bits(get(part), expected));
  Tensor vector = put({columns}, slice(start, 0, columns));
  how = by_chance;
  how.ld = 1;
  device().round_to_bf16(vector, how);
  EXPECT_TRUE(same_bits(get(vector), slice(all, 0, columns)));
  how = by_chance;
  how.first = 101;
  how.key = 6;
  device().round_to_bf16(part = put({rows, 99}, right), how);
  EXPECT_FALSE(same_bits(get(part), expected));
}

}  // namespace
}  // namespace troupe::engine::ops
