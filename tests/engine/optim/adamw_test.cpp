#include "engine/optim/adamw.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/base/random/random.h"
#include "engine/ops/cpu/cpu_options.h"

namespace troupe::engine::optim {
namespace {

using ::testing::HasSubstr;

// torch.optim.AdamW's documented formula and clip_grad_norm_, in double.
struct Oracle {
  std::vector<double> p, m, v;
  std::vector<bool> decays;
  int t = 0;

  double step(const std::vector<float>& grads, double lr, const AdamWConfig& c) {
    double squares = 0;
    for (const double g : grads) squares += g * g;
    const double norm = std::sqrt(squares),
                 clip = c.max_grad_norm > 0 ? std::min(1.0, c.max_grad_norm / (norm + 1e-6)) : 1;
    ++t;
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double g = grads[i] * clip;
      if (decays[i]) p[i] -= lr * c.weight_decay * p[i];
      m[i] = c.betas[0] * m[i] + (1 - c.betas[0]) * g;
      v[i] = c.betas[1] * v[i] + (1 - c.betas[1]) * g * g;
      p[i] -= lr * (m[i] / (1 - std::pow(c.betas[0], t))) /
              (std::sqrt(v[i] / (1 - std::pow(c.betas[1], t))) + c.eps);
    }
    return norm;
  }
};

struct AdamWTest : ::testing::Test {
  std::unique_ptr<ops::Device> device = ops::make_reference_device();
  // Decaying and not, alternating, so that ranges both merge and break.
  nn::Parameters parameters{
      *device, {{"a", {3, 4}}, {"b", {2, 2}}, {"gain", {5}}, {"bias", {3}}, {"c", {2, 3}}}, true};
  std::vector<float> start = random(0);

  std::vector<float> random(std::uint64_t stream) const {
    std::vector<float> out(static_cast<std::size_t>(parameters.count()));
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<float>(2 * uniform(7, stream, i) - 1);
    return out;
  }
  void reset() { device->upload(parameters.values(), start); }
  void set_grads(const std::vector<float>& grads) { device->upload(parameters.grads(), grads); }
  std::vector<float> values() { return ops::to_host(*device, parameters.values()); }
};

TEST_F(AdamWTest, FollowsTheDocumentedFormulaForEverySetting) {
  for (const AdamWConfig& config :
       {AdamWConfig{}, AdamWConfig{.weight_decay = 0.1},
        AdamWConfig{.betas = {0.9, 0.95}, .weight_decay = 0.1, .max_grad_norm = 0},
        AdamWConfig{.eps = 1e-3, .max_grad_norm = 0.01}, AdamWConfig{.betas = {0, 0}}}) {
    reset();
    AdamW optimizer(parameters);
    Oracle oracle{{start.begin(), start.end()},
                  std::vector<double>(start.size()),
                  std::vector<double>(start.size()),
                  {}};
    for (const auto& parameter : parameters.all())
      oracle.decays.insert(oracle.decays.end(), static_cast<std::size_t>(parameter.value.count()),
                           parameter.value.shape().rank() == 2);
    for (std::uint64_t k = 1; k <= 10; ++k) {
      const double lr = 0.01 / static_cast<double>(k);
      const auto grads = random(k);
      set_grads(grads);
      const auto report = optimizer.step(lr, config);
      ASSERT_TRUE(report);
      EXPECT_NEAR(report->grad_norm, oracle.step(grads, lr, config), 1e-12);
      const auto now = values();
      for (std::size_t i = 0; i < now.size(); ++i)
        ASSERT_NEAR(now[i], oracle.p[i], 1e-6) << "update " << k << ", element " << i;
    }
    EXPECT_EQ(optimizer.steps(), 10);
  }
}

TEST_F(AdamWTest, OneUpdateByHand) {
  // A matrix element 1 with gradient 0.5: 1 - 0.1 * 0.1 * 1 - 0.1 * 0.5 / (0.5 + 1e-8) = 0.89. A
  // vector element does not decay: 0.9.
  nn::Parameters two(*device, {{"matrix", {1, 1}}, {"vector", {1}}}, true);
  device->fill(two.values(), 1);
  device->fill(two.grads(), 0.5f);
  AdamW optimizer(two);
  const auto report = optimizer.step(0.1, {.weight_decay = 0.1, .max_grad_norm = 0});
  ASSERT_TRUE(report);
  EXPECT_NEAR(report->grad_norm, std::sqrt(0.5), 1e-15);
  const auto now = ops::to_host(*device, two.values());
  EXPECT_NEAR(now[0], 0.89, 1e-7);
  EXPECT_NEAR(now[1], 0.9, 1e-7);
}

TEST_F(AdamWTest, ClippingScalesOnlyWhatIsAboveTheBound) {
  // The first moment is the gradient of the update if beta1 is 0.
  const AdamWConfig config{.betas = {0, 0.999}, .max_grad_norm = 10};
  set_grads(std::vector<float>(start.size(), 1));
  AdamW below(parameters);
  ASSERT_TRUE(below.step(0, config));
  EXPECT_EQ(ops::to_host(*device, below.exp_avg())[0], 1);
  set_grads(std::vector<float>(start.size(), 100));
  AdamW above(parameters);
  const double norm = above.step(0, config)->grad_norm;
  EXPECT_NEAR(norm, 100 * std::sqrt(static_cast<double>(start.size())), 1e-9);
  EXPECT_NEAR(ops::to_host(*device, above.exp_avg())[0], 100 * 10 / (norm + 1e-6), 1e-5);
}

TEST_F(AdamWTest, AGradientThatIsNotFiniteChangesNothingAndIsNamed) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    reset();
    AdamW optimizer(parameters);
    auto grads = random(1);
    grads[17] = bad;  // the second element of "gain"
    grads[29] = bad;  // "c"
    set_grads(grads);
    const auto report = optimizer.step(0.1, {.weight_decay = 0.1});
    ASSERT_FALSE(report);
    EXPECT_THAT(report.error().what, HasSubstr("the gradient of gain is not finite at update 1"));
    EXPECT_EQ(values(), start);
    EXPECT_EQ(optimizer.steps(), 0);
    EXPECT_EQ(ops::to_host(*device, optimizer.exp_avg()), std::vector<float>(start.size(), 0));
  }
}

TEST_F(AdamWTest, HugeButFiniteGradientsDoNotOverflowTheNorm) {
  reset();
  AdamW optimizer(parameters);
  set_grads(std::vector<float>(start.size(), 3e38f));
  const auto report = optimizer.step(0.1, {});
  ASSERT_TRUE(report);
  EXPECT_NEAR(report->grad_norm / (3e38 * std::sqrt(static_cast<double>(start.size()))), 1, 1e-6);
}

TEST_F(AdamWTest, ARestoredOptimizerContinuesBitForBit) {
  const auto run = [&](AdamW& optimizer, std::uint64_t first, std::uint64_t last) {
    for (auto k = first; k <= last; ++k) {
      set_grads(random(k));
      ASSERT_TRUE(optimizer.step(0.01, {.weight_decay = 0.1}));
    }
  };
  reset();
  AdamW straight(parameters);
  run(straight, 1, 6);
  const auto expected = values();

  reset();
  AdamW before(parameters);
  run(before, 1, 3);
  AdamW after(parameters);
  after.restore(ops::to_host(*device, before.exp_avg()), ops::to_host(*device, before.exp_avg_sq()),
                before.steps());
  run(after, 4, 6);
  EXPECT_EQ(values(), expected);
  EXPECT_EQ(after.steps(), 6);
}

TEST_F(AdamWTest, AnUpdateThatClearsIsOneThatKeepsAndZeroGrad) {
  std::vector<std::vector<float>> found;
  for (const auto after : {AdamW::Gradients::kept, AdamW::Gradients::cleared}) {
    reset();
    set_grads(random(3));
    AdamW optimizer(parameters);
    ASSERT_TRUE(optimizer.step(0.1, {.weight_decay = 0.1}, after));
    found.push_back(values());
    const auto expected =
        after == AdamW::Gradients::kept ? random(3) : std::vector<float>(start.size(), 0);
    EXPECT_EQ(ops::to_host(*device, parameters.grads()), expected);
  }
  EXPECT_EQ(found[0], found[1]);
}

TEST_F(AdamWTest, ARefusedUpdateThatClearsLeavesNoGradient) {
  reset();
  auto grads = random(1);
  grads[2] = std::numeric_limits<float>::infinity();
  set_grads(grads);
  AdamW optimizer(parameters);
  const auto report = optimizer.step(0.1, {}, AdamW::Gradients::cleared);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().what, HasSubstr("the gradient of a is not finite"));
  EXPECT_EQ(values(), start);
  EXPECT_EQ(ops::to_host(*device, parameters.grads()), std::vector<float>(start.size(), 0));
}

TEST_F(AdamWTest, WeightsThatAreRoundedStochasticallyAreBf16AndOnTheMeanThoseOfTheMaster) {
  // Updates of an eighth of what a weight near 1 can show in bf16: rounded to nearest, none of them
  // would ever be seen.
  const double rate = 0x1p-10;
  const int updates = 64, seeds = 40;
  double moved = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    device->upload(parameters.values(), std::vector<float>(start.size(), 1.0F));
    AdamW optimizer(parameters);
    for (int i = 0; i < updates; ++i) {
      set_grads(std::vector<float>(start.size(), 1.0F));
      ASSERT_TRUE(optimizer.step(rate, {.eps = 0, .weights = nn::WeightType::bf16, .seed = seed}));
    }
    for (const float value : values()) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(value) & 0xffffU, 0U);
      moved += (1 - static_cast<double>(value)) / static_cast<double>(start.size() * seeds);
    }
  }
  EXPECT_NEAR(moved, updates * rate, 0.03 * updates * rate);
}

TEST_F(AdamWTest, RoundingsOfTwoUpdatesHaveRandomNumbersOfTheirOwn) {
  const auto after = [&](std::uint64_t seed, std::int64_t done) {
    reset();
    AdamW optimizer(parameters);
    optimizer.set_steps(done);
    set_grads(std::vector<float>(start.size(), 0.0F));
    EXPECT_TRUE(optimizer.step(1e-3, {.weights = nn::WeightType::bf16, .seed = seed}));
    return values();
  };
  EXPECT_EQ(after(1, 0), after(1, 0));
  EXPECT_NE(after(1, 0), after(1, 1));
  EXPECT_NE(after(1, 0), after(2, 0));
}

// The oracle keeps the moments in f64 and rounds nothing: the mean over seeds of rounded moments
// must be its value, although one update changes them by less than bf16 can show.
TEST_F(AdamWTest, Bf16MomentsHaveTheMeanOfExactOnes) {
  const double beta1 = 0.9, beta2 = 0.999, gradient = 0.5;
  const int updates = 40, seeds = 40;
  double first = 0, second = 0, found_first = 0, found_second = 0;
  for (int i = 0; i < updates; ++i) {
    first = beta1 * first + (1 - beta1) * gradient;
    second = beta2 * second + (1 - beta2) * gradient * gradient;
  }
  const double each = 1 / static_cast<double>(start.size() * seeds);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    AdamW optimizer(parameters, nullptr, nullptr, nullptr, DType::bf16);
    EXPECT_EQ(optimizer.exp_avg().bytes(), 2 * start.size());
    for (int i = 0; i < updates; ++i) {
      set_grads(std::vector<float>(start.size(), static_cast<float>(gradient)));
      ASSERT_TRUE(optimizer.step(0, {.max_grad_norm = 0, .seed = seed}));
    }
    for (const float value : ops::to_host(*device, optimizer.exp_avg()))
      found_first += value * each;
    for (const float value : ops::to_host(*device, optimizer.exp_avg_sq()))
      found_second += value * each;
  }
  EXPECT_NEAR(found_first, first, 0.002 * first);
  EXPECT_NEAR(found_second, second, 0.004 * second);
}

TEST_F(AdamWTest, Bf16MomentsRestoredFromAFileContinueWithTheSameBits) {
  const auto weights_after = [&](int saved_at) {
    reset();
    auto optimizer = std::make_unique<AdamW>(parameters, nullptr, nullptr, nullptr, DType::bf16);
    for (int i = 0; i < 4; ++i) {
      if (i == saved_at) {
        auto next = std::make_unique<AdamW>(parameters, nullptr, nullptr, nullptr, DType::bf16);
        next->restore(ops::to_host(*device, optimizer->exp_avg()),
                      ops::to_host(*device, optimizer->exp_avg_sq()), optimizer->steps());
        optimizer = std::move(next);
      }
      set_grads(random(static_cast<std::uint64_t>(i)));
      EXPECT_TRUE(optimizer->step(1e-3, {.seed = 5}));
    }
    return values();
  };
  EXPECT_EQ(weights_after(2), weights_after(-1));
}

TEST_F(AdamWTest, ZeroGradZeroesEveryGradient) {
  set_grads(random(1));
  AdamW optimizer(parameters);
  optimizer.zero_grad();
  EXPECT_EQ(ops::to_host(*device, parameters.grads()), std::vector<float>(start.size(), 0));
}

/// Has always read seven values more than requested.
struct SevenAhead final : nn::ArenaReader {
  std::int64_t wait_for(std::int64_t begin) override {
    asked.push_back(begin);
    return begin + 7;
  }
  void wait_for_all() override { ++ends; }
  std::vector<std::int64_t> asked;
  int ends = 0;
};

// In pieces that end anywhere, also within a vector register and a row.
TEST(ReaderTest, WhatItHasReadIsUpdatedWithTheSameBits) {
  const auto device = ops::make_cpu_device({.threads = 2});
  for (const DType moments : {DType::f32, DType::bf16})
    for (const DType weights : {DType::f32, DType::bf16}) {
      std::vector<std::vector<float>> found;
      for (const bool read : {false, true}) {
        nn::Parameters parameters(*device, {{"a", {37, 29}}, {"gain", {29}}, {"b", {5, 41}}}, true,
                                  {.values = weights});
        std::vector<float> numbers(static_cast<std::size_t>(parameters.count()));
        for (std::size_t i = 0; i < numbers.size(); ++i)
          numbers[i] = static_cast<float>(2 * uniform(7, 1, i) - 1);
        device->upload(parameters.values(), numbers);
        AdamW optimizer(parameters, nullptr, nullptr, nullptr, moments);
        optimizer.keep_average();
        SevenAhead reader;
        if (read) optimizer.set_reader(&reader);
        for (int step = 0; step < 3; ++step) {
          device->upload(parameters.grads(), numbers);
          value_or_throw(optimizer.step(1e-2, {.weight_decay = 0.1, .seed = 5, .ema_decay = 0.9}));
        }
        for (const Tensor& each : {parameters.values(), optimizer.exp_avg(), optimizer.exp_avg_sq(),
                                   optimizer.average()})
          found.push_back(ops::to_host(*device, each));
        if (!read) continue;
        EXPECT_EQ(reader.ends, 3);
        EXPECT_GT(reader.asked.size(), numbers.size() * 3 / 7);
      }
      for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(found[i], found[i + 4]) << i;
    }
}

}  // namespace
}  // namespace troupe::engine::optim
