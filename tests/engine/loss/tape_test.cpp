// Every operation of the tape against central differences in float64, and its values against what
// they are by definition.
#include "engine/loss/tape.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "engine/base/errors/check.h"
#include "engine/base/random/random.h"

namespace troupe::engine::loss {
namespace {

using Function = std::function<Expr(const Expr&)>;

std::vector<double> numbers(std::size_t count, std::uint64_t stream, double low, double high) {
  std::vector<double> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(low + (high - low) * uniform(5, stream, i));
  return out;
}

// The elements weigh differently, so that a gradient in the wrong place shows.
Expr weighted_sum(const Expr& y) {
  if (y.scalar()) return y;
  return sum(y * numbers(y.size(), 99, 0.5, 2));
}

void expect_gradient(const Function& f, const std::vector<double>& at) {
  const Expr x = variable(at);
  const auto gradient = gradients(weighted_sum(f(x)), std::vector<Expr>{x});
  const double h = 1e-6;
  for (std::size_t i = 0; i < at.size(); ++i) {
    auto up = at, down = at;
    up[i] += h;
    down[i] -= h;
    const double measured = (weighted_sum(f(up)).value() - weighted_sum(f(down)).value()) / (2 * h);
    EXPECT_NEAR(gradient[0][i], measured, 1e-7 * (1 + std::abs(measured))) << "element " << i;
  }
}

const std::vector<std::int32_t> offsets{0, 3, 3, 4, 9};  // a sequence of no token among them

TEST(Tape, ArithmeticHasTheGradientsOfFiniteDifferences) {
  const auto at = numbers(9, 1, -2, 2), other = numbers(9, 2, 0.5, 3);
  expect_gradient([&](const Expr& x) { return x + other; }, at);
  expect_gradient([&](const Expr& x) { return other - x; }, at);
  expect_gradient([&](const Expr& x) { return x * other * x; }, at);
  expect_gradient([&](const Expr& x) { return x / other + 2.0 / (x + 5.0); }, at);
  expect_gradient([&](const Expr& x) { return -x * 3.0 - 1.0; }, at);
  expect_gradient([&](const Expr& x) { return sum(x) * x / (sum(square(x)) + 1.0); }, at);
  expect_gradient([&](const Expr& x) { return min(x, other - 1.0) + max(x, 0.3); }, at);
}

TEST(Tape, FunctionsHaveTheGradientsOfFiniteDifferences) {
  const auto at = numbers(9, 3, -2, 2), positive = numbers(9, 4, 0.2, 3),
             negative = numbers(9, 5, -4, -0.1);
  for (const auto& f :
       std::vector<Function>{exp, square, sigmoid, log_sigmoid, softplus, abs, relu,
                             [](const Expr& x) { return clip(x, -1, 0.5); },
                             [](const Expr& x) { return where(x > 0.0, x * x, exp(x)); },
                             [](const Expr& x) { return mean(x * x); }, sorted})
    expect_gradient(f, at);
  expect_gradient(log, positive);
  expect_gradient(log1mexp, negative);
}

TEST(Tape, PassagesBetweenTokensSequencesAndPairsHaveTheGradientsOfFiniteDifferences) {
  const auto tokens = numbers(9, 6, -2, 2), sequences = numbers(4, 7, -2, 2);
  const std::vector<float> mask{0, 1, 1, 1, 0, 1, 0, 1, 1};
  expect_gradient([&](const Expr& x) { return square(sum_by_sequence(x, offsets)); }, tokens);
  expect_gradient([&](const Expr& x) { return exp(mean_by_sequence(x, mask, offsets)); }, tokens);
  expect_gradient([&](const Expr& x) { return square(spread(x, offsets)); }, sequences);
  expect_gradient([&](const Expr& x) { return exp(chosen(x) - 2.0 * rejected(x)); }, sequences);
  expect_gradient([&](const Expr& x) { return square(gather(x, {3, 0, 0})); }, sequences);
}

TEST(Tape, ValuesAreWhatTheirNamesSay) {
  const Expr x = std::vector<double>{1, 2, 3, 10, 4, 0, 5, 6, 7};
  EXPECT_EQ(sum_by_sequence(x, offsets).values(), (std::vector<double>{6, 0, 10, 22}));
  const std::vector<float> mask{0, 1, 1, 0, 1, 0, 0, 1, 1};
  EXPECT_EQ(mean_by_sequence(x, mask, offsets).values(),
            (std::vector<double>{2.5, 0, 0, 17.0 / 3}));
  const Expr per_sequence = std::vector<double>{1, 2, 3, 4};
  EXPECT_EQ(spread(per_sequence, offsets).values(),
            (std::vector<double>{1, 1, 1, 3, 4, 4, 4, 4, 4}));
  EXPECT_EQ(chosen(per_sequence).values(), (std::vector<double>{1, 3}));
  EXPECT_EQ(rejected(per_sequence).values(), (std::vector<double>{2, 4}));
  EXPECT_EQ(sorted(std::vector<double>{3, 1, 2}).values(), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ((x < 4.0).values(), (std::vector<double>{1, 1, 1, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(clip(x, 2, 5).values(), (std::vector<double>{2, 2, 3, 5, 4, 2, 5, 5, 5}));
}

TEST(Tape, ExtremeArgumentsStayFinite) {
  const Expr x = variable({-1e4, -800, 800, 1e4});
  for (const auto& f : {log_sigmoid, softplus, sigmoid}) {
    const Expr y = f(x);
    const auto gradient = gradients(sum(y), std::vector<Expr>{x});
    for (const double v : y.values()) EXPECT_TRUE(std::isfinite(v));
    for (const double v : gradient[0]) EXPECT_TRUE(std::isfinite(v));
  }
  EXPECT_EQ(log_sigmoid(-800.0).value(), -800);
  EXPECT_NEAR(log1mexp(-1e-12).value(), std::log(1e-12) - 5e-13, 1e-14);
  EXPECT_DOUBLE_EQ(log1mexp(-50.0).value(), -std::exp(-50.0));
}

TEST(Tape, WhatIsNotChosenContributesNothingNotEvenNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Expr x = variable({1, 900, 2});
  const Expr y = where(std::vector<double>{1, 0, 1}, x * std::vector<double>{2, nan, 3}, 0.0);
  const Expr loss = sum(exp(y));
  EXPECT_DOUBLE_EQ(loss.value(), std::exp(2.0) + 1 + std::exp(6.0));
  const auto gradient =
      gradients(sum(where(std::vector<double>{1, 0, 1}, x, 0.0)), std::vector<Expr>{x});
  EXPECT_EQ(gradient[0], (std::vector<double>{1, 0, 1}));
}

TEST(Tape, DetachStopsTheGradient) {
  const Expr x = variable({0.5, -1});
  const auto gradient = gradients(sum(detach(exp(x)) * x), std::vector<Expr>{x});
  EXPECT_DOUBLE_EQ(gradient[0][0], std::exp(0.5));
  EXPECT_DOUBLE_EQ(gradient[0][1], std::exp(-1.0));
}

TEST(Tape, KinksHavePyTorchsSubgradients) {
  const Expr x = variable({1, 1, 1, 0, 0});
  const Expr tie = gather(min(x, 1.0), {0}), low = gather(clip(x, 1, 2), {1}),
             high = gather(clip(x, 0, 1), {2});
  const auto gradient = gradients(
      sum(tie) + sum(low) + sum(high) + sum(gather(abs(x), {3})) + sum(gather(relu(x), {4})),
      std::vector<Expr>{x});
  EXPECT_EQ(gradient[0], (std::vector<double>{0.5, 1, 1, 0, 0}));
}

TEST(Tape, AVariableThatIsNotUsedHasGradientZero) {
  const Expr x = variable({1, 2}), unused = variable({3, 4, 5});
  const auto gradient = gradients(sum(x), std::vector<Expr>{unused, x});
  EXPECT_EQ(gradient[0], (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(gradient[1], (std::vector<double>{1, 1}));
  EXPECT_EQ(gradients(Expr(3.0), std::vector<Expr>{x})[0], (std::vector<double>{0, 0}));
}

TEST(Tape, ArraysOfDifferentLengthsAreABug) {
  const Expr three = std::vector<double>{1, 2, 3}, single = std::vector<double>{1};
  EXPECT_THROW(three + single, Bug);
  EXPECT_THROW(sum_by_sequence(three, {0, 2}), Bug);
  EXPECT_THROW(spread(three, {0, 2}), Bug);
  EXPECT_THROW(chosen(three), Bug);
  EXPECT_THROW(gather(three, {3}), Bug);
  EXPECT_THROW(gradients(three, std::vector<Expr>{three}), Bug);
  EXPECT_THROW(sum(Expr()), Bug);
}

}  // namespace
}  // namespace troupe::engine::loss
