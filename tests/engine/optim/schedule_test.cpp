#include "engine/optim/schedule.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numbers>

namespace troupe::engine::optim {
namespace {

using ::testing::HasSubstr;
constexpr double pi = std::numbers::pi;

Schedule make(std::string_view name, ScheduleOptions options = {}) {
  return Schedule::create(name, options).value();
}

TEST(Schedule, ConstantIsOneAfterItsWarmUp) {
  const auto plain = make("constant"), warm = make("constant_with_warmup", {.warmup_steps = 4}),
             same = make("constant", {.warmup_steps = 4});
  for (int k = 0; k < 20; ++k) {
    EXPECT_EQ(plain(k), 1);
    EXPECT_EQ(warm(k), k < 4 ? k / 4.0 : 1) << k;
    EXPECT_EQ(same(k), warm(k)) << k;
  }
}

TEST(Schedule, LinearRisesAndFallsToZero) {
  const auto rate = make("linear", {.total_steps = 10, .warmup_steps = 2});
  const double expected[] = {0,       0.5,     1,       7.0 / 8, 6.0 / 8, 5.0 / 8,
                             4.0 / 8, 3.0 / 8, 2.0 / 8, 1.0 / 8, 0,       0};
  for (int k = 0; k < 12; ++k) EXPECT_DOUBLE_EQ(rate(k), expected[k]) << k;
  EXPECT_DOUBLE_EQ(make("linear", {.total_steps = 10, .min_ratio = 0.2})(5), 0.6);
}

TEST(Schedule, CosineIsHalfAWaveDownToItsLeastRatio) {
  const auto rate = make("cosine", {.total_steps = 110, .warmup_steps = 10});
  EXPECT_EQ(rate(0), 0);
  EXPECT_DOUBLE_EQ(rate(5), 0.5);
  EXPECT_EQ(rate(10), 1);
  EXPECT_DOUBLE_EQ(rate(60), 0.5);
  EXPECT_NEAR(rate(110), 0, 1e-15);
  for (int k = 10; k < 110; ++k)
    EXPECT_DOUBLE_EQ(rate(k), 0.5 * (1 + std::cos(pi * 0.5 * 2.0 * ((k - 10) / 100.0)))) << k;
  const auto floored =
      make("cosine_with_min_lr", {.total_steps = 110, .warmup_steps = 10, .min_ratio = 0.1});
  EXPECT_DOUBLE_EQ(floored(5), 0.5);  // the warm-up is not lifted
  for (int k = 10; k < 110; ++k) EXPECT_DOUBLE_EQ(floored(k), rate(k) * 0.9 + 0.1) << k;
  EXPECT_EQ(floored(500), floored(110));
}

TEST(Schedule, InverseSquareRootMeetsItsWarmUpAtOne) {
  const auto rate = make("inverse_sqrt", {.warmup_steps = 100});
  EXPECT_DOUBLE_EQ(rate(50), 0.5);
  EXPECT_EQ(rate(100), 1);
  EXPECT_DOUBLE_EQ(rate(400), 0.5);        // sqrt(100 / 400)
  const auto cold = make("inverse_sqrt");  // transformers: a timescale of 10,000
  EXPECT_EQ(cold(0), 1);
  EXPECT_DOUBLE_EQ(cold(30000), 0.5);
}

TEST(Schedule, WarmUpStableDecayHasThreeParts) {
  for (const auto* name : {"wsd", "warmup_stable_decay"}) {
    const auto rate = make(name, {.total_steps = 100, .warmup_steps = 10, .decay_steps = 20});
    EXPECT_EQ(rate(0), 0);
    EXPECT_DOUBLE_EQ(rate(5), 0.5);
    for (int k = 10; k <= 80; ++k) EXPECT_EQ(rate(k), 1) << k;
    for (int k = 80; k < 100; ++k)
      EXPECT_DOUBLE_EQ(rate(k), 0.5 * (1 + std::cos(pi * (k - 80) / 20.0))) << k;
    EXPECT_NEAR(rate(100), 0, 1e-15);
  }
  const auto lifted = make("wsd", {.total_steps = 100, .warmup_steps = 10, .min_ratio = 0.1});
  EXPECT_DOUBLE_EQ(lifted(5), 0.55);  // transformers lifts this warm-up
  EXPECT_EQ(lifted(89), 1);
  EXPECT_DOUBLE_EQ(lifted(95), 0.55);
  EXPECT_DOUBLE_EQ(lifted(100), 0.1);
}

TEST(Schedule, NeverLeavesZeroToOneWhateverTheSteps) {
  for (const auto& name : schedule_names())
    for (std::int64_t total : {1, 2, 7})
      for (std::int64_t warmup = 0; warmup <= total; ++warmup) {
        const auto rate = make(name, {.total_steps = total, .warmup_steps = warmup});
        for (std::int64_t k = 0; k < 20; ++k) {
          EXPECT_GE(rate(k), 0) << name << total << warmup << k;
          EXPECT_LE(rate(k), 1) << name << total << warmup << k;
        }
      }
}

std::string refusal(std::string_view name, ScheduleOptions options) {
  const auto made = Schedule::create(name, options);
  return made ? "" : made.error().what;
}

TEST(Schedule, NonsenseIsRefusedInWords) {
  EXPECT_THAT(refusal("cosin", {.total_steps = 9}), HasSubstr("did you mean cosine?"));
  EXPECT_THAT(refusal("cosine", {}), HasSubstr("needs the number of steps"));
  EXPECT_THAT(refusal("linear", {.total_steps = 5, .warmup_steps = 6}),
              HasSubstr("more than the 5 steps"));
  EXPECT_THAT(refusal("linear", {.total_steps = 5, .warmup_steps = -1}), HasSubstr("found -1"));
  EXPECT_THAT(refusal("cosine", {.total_steps = 5, .min_ratio = 1.5}), HasSubstr("found 1.5"));
  EXPECT_THAT(refusal("cosine", {.total_steps = 5, .min_ratio = NAN}), HasSubstr("found nan"));
  EXPECT_THAT(refusal("constant", {.min_ratio = 0.1}), HasSubstr("never ends"));
  EXPECT_THAT(refusal("wsd", {.total_steps = 10, .warmup_steps = 5, .decay_steps = 6}),
              HasSubstr("does not fit"));
}

}  // namespace
}  // namespace troupe::engine::optim
