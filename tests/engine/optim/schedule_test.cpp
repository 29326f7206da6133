#include "engine/optim/schedule.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numbers>

namespace troupe::engine::optim {
namespace {

using ::testing::HasSubstr;
constexpr double pi = std::numbers::pi;

Schedule make(ScheduleKind kind, ScheduleOptions options = {}) {
  return Schedule::create(kind, options).value();
}

TEST(Schedule, ConstantIsOneAfterItsWarmUp) {
  const auto plain = make(ScheduleKind::constant),
             warm = make(ScheduleKind::constant, {.warmup_steps = 4}),
             same = make(ScheduleKind::constant, {.warmup_steps = 4});
  for (int k = 0; k < 20; ++k) {
    EXPECT_EQ(plain(k), 1);
    EXPECT_EQ(warm(k), k < 4 ? k / 4.0 : 1) << k;
    EXPECT_EQ(same(k), warm(k)) << k;
  }
}

TEST(Schedule, LinearRisesAndFallsToZero) {
  const auto rate = make(ScheduleKind::linear, {.total_steps = 10, .warmup_steps = 2});
  const double expected[] = {0,       0.5,     1,       7.0 / 8, 6.0 / 8, 5.0 / 8,
                             4.0 / 8, 3.0 / 8, 2.0 / 8, 1.0 / 8, 0,       0};
  for (int k = 0; k < 12; ++k) EXPECT_DOUBLE_EQ(rate(k), expected[k]) << k;
  EXPECT_DOUBLE_EQ(make(ScheduleKind::linear, {.total_steps = 10, .min_ratio = 0.2})(5), 0.6);
}

TEST(Schedule, CosineIsHalfAWaveDownToItsLeastRatio) {
  const auto rate = make(ScheduleKind::cosine, {.total_steps = 110, .warmup_steps = 10});
  EXPECT_EQ(rate(0), 0);
  EXPECT_DOUBLE_EQ(rate(5), 0.5);
  EXPECT_EQ(rate(10), 1);
  EXPECT_DOUBLE_EQ(rate(60), 0.5);
  EXPECT_NEAR(rate(110), 0, 1e-15);
  for (int k = 10; k < 110; ++k)
    EXPECT_DOUBLE_EQ(rate(k), 0.5 * (1 + std::cos(pi * 0.5 * 2.0 * ((k - 10) / 100.0)))) << k;
  const auto floored =
      make(ScheduleKind::cosine, {.total_steps = 110, .warmup_steps = 10, .min_ratio = 0.1});
  EXPECT_DOUBLE_EQ(floored(5), 0.5);  // the warm-up is not lifted
  for (int k = 10; k < 110; ++k) EXPECT_DOUBLE_EQ(floored(k), rate(k) * 0.9 + 0.1) << k;
  EXPECT_EQ(floored(500), floored(110));
}

TEST(Schedule, InverseSquareRootMeetsItsWarmUpAtOne) {
  const auto rate = make(ScheduleKind::inverse_sqrt, {.warmup_steps = 100});
  EXPECT_DOUBLE_EQ(rate(50), 0.5);
  EXPECT_EQ(rate(100), 1);
  EXPECT_DOUBLE_EQ(rate(400), 0.5);                    // sqrt(100 / 400)
  const auto cold = make(ScheduleKind::inverse_sqrt);  // transformers: a timescale of 10,000
  EXPECT_EQ(cold(0), 1);
  EXPECT_DOUBLE_EQ(cold(30000), 0.5);
}

TEST(Schedule, WarmUpStableDecayHasThreeParts) {
  const auto rate =
      make(ScheduleKind::wsd, {.total_steps = 100, .warmup_steps = 10, .decay_steps = 20});
  EXPECT_EQ(rate(0), 0);
  EXPECT_DOUBLE_EQ(rate(5), 0.5);
  for (int k = 10; k <= 80; ++k) EXPECT_EQ(rate(k), 1) << k;
  for (int k = 80; k < 100; ++k)
    EXPECT_DOUBLE_EQ(rate(k), 0.5 * (1 + std::cos(pi * (k - 80) / 20.0))) << k;
  EXPECT_NEAR(rate(100), 0, 1e-15);
  const auto lifted =
      make(ScheduleKind::wsd,
           {.total_steps = 100, .warmup_steps = 10, .warmup_start = 0.1, .min_ratio = 0.1});
  EXPECT_DOUBLE_EQ(lifted(5), 0.55);  // as transformers lifts this warm-up
  EXPECT_EQ(lifted(89), 1);
  EXPECT_DOUBLE_EQ(lifted(95), 0.55);
  EXPECT_DOUBLE_EQ(lifted(100), 0.1);
}

// get_lr() of megatron/core/optimizer_param_scheduler.py with a peak of 1, written again.
double megatron_rate(const ScheduleOptions& o, ScheduleKind kind, double step) {
  const double warmup = o.warmup_steps, end = static_cast<double>(o.total_steps);
  if (warmup > 0 && step <= warmup) return o.warmup_start + (1 - o.warmup_start) * step / warmup;
  if (kind == ScheduleKind::constant) return 1;
  if (step > end) return o.min_ratio;
  if (kind == ScheduleKind::inverse_sqrt)
    return std::max(o.min_ratio, std::sqrt(warmup) / std::sqrt(step));
  double coefficient = 1 - (step - warmup) / (end - warmup);
  if (kind == ScheduleKind::cosine)
    coefficient = 0.5 * (std::cos(pi * (step - warmup) / (end - warmup)) + 1);
  if (kind == ScheduleKind::wsd) {
    const double start = end - static_cast<double>(o.decay_steps);
    const double ratio = (step - start) / static_cast<double>(o.decay_steps);
    coefficient = step <= start                              ? 1
                  : o.decay_style == DecayStyle::linear      ? 1 - ratio
                  : o.decay_style == DecayStyle::cosine      ? 0.5 * (std::cos(pi * ratio) + 1)
                  : o.decay_style == DecayStyle::exponential ? 2 * std::pow(0.5, ratio) - 1
                                                             : 1 - std::sqrt(ratio);
  }
  return o.min_ratio + coefficient * (1 - o.min_ratio);
}

TEST(Schedule, IsMegatronsForEveryStyle) {
  for (const auto kind : {ScheduleKind::constant, ScheduleKind::linear, ScheduleKind::cosine,
                          ScheduleKind::inverse_sqrt, ScheduleKind::wsd})
    for (const auto style :
         {DecayStyle::cosine, DecayStyle::linear, DecayStyle::exponential, DecayStyle::minus_sqrt})
      for (const double least : {0.0, 0.1, 0.5}) {
        const bool floored = kind != ScheduleKind::constant;
        const ScheduleOptions options{.total_steps = 60,
                                      .warmup_steps = 7,
                                      .warmup_start = 0.05,
                                      .min_ratio = floored ? least : 0,
                                      .decay_steps = 13,
                                      .decay_style = style};
        const auto rate = make(kind, options);
        for (int k = 0; k < 80; ++k)
          EXPECT_NEAR(rate(k), megatron_rate(options, kind, k), 1e-15) << k;
      }
}

TEST(Schedule, NeverLeavesZeroToOneWhateverTheSteps) {
  for (const auto name : {ScheduleKind::constant, ScheduleKind::linear, ScheduleKind::cosine,
                          ScheduleKind::inverse_sqrt, ScheduleKind::wsd})
    for (int total : {1, 2, 7})
      for (int warmup = 0; warmup <= total; ++warmup) {
        const auto rate =
            make(name, {.total_steps = total, .warmup_steps = static_cast<double>(warmup)});
        for (int k = 0; k < 20; ++k) {
          EXPECT_GE(rate(k), 0) << static_cast<int>(name) << total << warmup << k;
          EXPECT_LE(rate(k), 1) << static_cast<int>(name) << total << warmup << k;
        }
      }
}

std::string refusal(ScheduleKind kind, ScheduleOptions options) {
  const auto made = Schedule::create(kind, options);
  return made ? "" : made.error().what;
}

TEST(Schedule, NonsenseIsRefusedInWords) {
  EXPECT_THAT(refusal(ScheduleKind::cosine, {}), HasSubstr("needs the number of steps"));
  EXPECT_THAT(refusal(ScheduleKind::linear, {.total_steps = 5, .warmup_steps = -1}),
              HasSubstr("found -1"));
  EXPECT_THAT(refusal(ScheduleKind::cosine, {.total_steps = 5, .min_ratio = 1.5}),
              HasSubstr("found 1.5"));
  EXPECT_THAT(refusal(ScheduleKind::cosine, {.total_steps = 5, .min_ratio = NAN}),
              HasSubstr("found nan"));
  EXPECT_THAT(refusal(ScheduleKind::constant, {.min_ratio = 0.1}), HasSubstr("no minimum"));
  EXPECT_THAT(refusal(ScheduleKind::wsd, {.total_steps = 10, .warmup_steps = 5, .decay_steps = 6}),
              HasSubstr("does not fit"));
}

}  // namespace
}  // namespace troupe::engine::optim
