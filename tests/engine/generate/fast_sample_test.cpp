#include "engine/generate/fast_sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "engine/base/random/random.h"
#include "engine/generate/sampler.h"
#include "engine/generate/simd_softmax.h"

namespace troupe::engine::generate {
namespace {

/// Logits from -spread to spread.
std::vector<float> made_logits(std::size_t count, double spread, std::uint64_t seed) {
  std::vector<float> z;
  for (std::size_t i = 0; i < count; ++i)
    z.push_back(static_cast<float>(spread * (2 * uniform(seed, 1, i) - 1)));
  return z;
}

std::int32_t by_the_chain(std::span<const float> logits, double temperature, double u) {
  SamplingParams params;
  params.temperature = temperature;
  const std::vector<std::int32_t> tokens = {0};
  return sample(normalize(apply_processors(logits, {params, tokens, 1, {}})), u);
}

TEST(FastSample, DrawsTheTokenOfTheChain) {
  constexpr int draws = 40;
  int may_improve = 0, all = 0;
  for (const std::size_t count : {1U, 7U, 8U, 255U, 256U, 257U, 1000U, 5003U}) {
    for (const double spread : {0.0, 0.01, 1.0, 20.0, 900.0}) {
      const auto logits = made_logits(count, spread, count);
      for (const double temperature : {1.0, 0.6, 0.011, 70.0}) {
        for (int i = 0; i < draws; ++i, ++all) {
          const double u = uniform(5, count, static_cast<std::uint64_t>(all));
          const auto quick = fast_sample(logits, temperature, u);
          may_improve += !quick;
          EXPECT_EQ(quick.value_or(by_the_chain(logits, temperature, u)),
                    by_the_chain(logits, temperature, u))
              << count << " " << u;
        }
      }
    }
  }
  EXPECT_LE(may_improve, all / 1000);
}

TEST(FastSample, SumsRoughlyToWithinTheErrorItStates) {
  const SimdSoftmax& simd = simd_softmax();
  if (simd.approximate_sum == nullptr) GTEST_SKIP() << "this processor has none";
  std::array<double, row_block> weights;
  for (const double spread : {0.0, 0.5, 12.0, 300.0, 9e4}) {
    for (const double temperature : {1.0, 0.7, 31.0}) {
      for (std::uint64_t seed = 0; seed < 100; ++seed) {
        auto logits = made_logits(row_block, spread * temperature, seed);
        if (seed % 2 == 1) logits[seed] = -std::numeric_limits<float>::infinity();
        const double scale = std::numbers::log2e / temperature,
                     base = std::nearbyint(scale * *std::ranges::max_element(logits));
        const double exact = simd.exp2_weights(logits.data(), scale, base, weights.data());
        EXPECT_NEAR(simd.approximate_sum(logits.data(), scale, base) / exact, 1,
                    approximate_sum_error)
            << spread << " " << seed;
      }
    }
  }
}

TEST(FastSample, LeavesBordersBetweenTokensToTheChain) {
  const std::vector<float> even = {1, 1};
  EXPECT_EQ(fast_sample(even, 1, 0.5 - 1e-12), std::nullopt);
  EXPECT_EQ(fast_sample(even, 1, 0.5), std::nullopt);
  EXPECT_EQ(fast_sample(even, 1, 0.5 - 1e-6), 0);
  EXPECT_EQ(fast_sample(even, 1, 0.5 + 1e-6), 1);
  EXPECT_EQ(fast_sample(even, 1, 0), std::nullopt);
}

TEST(FastSample, LeavesHugeLogitsToTheChain) {
  EXPECT_EQ(fast_sample(std::vector<float>{1e6F, 1e6F}, 1, 0.3), std::nullopt);
  EXPECT_EQ(fast_sample(std::vector<float>{200, 200}, 1e-3, 0.3), std::nullopt);
  EXPECT_EQ(fast_sample(std::vector<float>{200, 200}, 1, 0.3), 0);
}

TEST(FastSample, TakesTheFirstOfTheLargest) {
  auto logits = made_logits(1000, 1, 9);
  for (const std::size_t place : {999U, 768U, 767U, 256U, 9U, 0U}) {
    logits[place] = 2;
    EXPECT_EQ(argmax(logits), static_cast<std::int32_t>(place)) << "equals stand behind it";
  }
  EXPECT_EQ(argmax(std::vector<float>{-0.0F, 0.0F}), 0);
  EXPECT_EQ(argmax(std::vector<float>(300, std::numeric_limits<float>::lowest())), 0);
}

TEST(FastSample, FindsTheFirstBadLogit) {
  EXPECT_EQ(first_nonfinite(std::vector<float>{1, 2, 3}), -1);
  EXPECT_EQ(first_nonfinite(std::vector<float>(512, std::numeric_limits<float>::max())), -1);
  for (const float bad : {std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(), std::nanf("")}) {
    for (const std::int64_t place : {0, 255, 256, 299}) {
      std::vector<float> logits(300, 1.0F);
      logits[static_cast<std::size_t>(place)] = bad;
      logits.back() = bad;
      EXPECT_EQ(first_nonfinite(logits), place);
    }
  }
}

TEST(FastSample, IsForRowsThatNoRuleChanges) {
  SamplingParams plain;
  plain.temperature = 0.7;
  plain.seed = 3;
  plain.max_new_tokens = 99;
  plain.stop_tokens = {4};
  plain.stop_strings = {"x"};
  plain.top_logprobs = 2;
  plain.ignore_eos = true;
  EXPECT_TRUE(has_no_processors(plain));
  const std::function<void(SamplingParams&)> rules[] = {
      [](SamplingParams& p) { p.top_k = 5; },
      [](SamplingParams& p) { p.top_p = 0.9; },
      [](SamplingParams& p) { p.min_p = 0.1; },
      [](SamplingParams& p) { p.typical_p = 0.9; },
      [](SamplingParams& p) { p.epsilon_cutoff = 0.1; },
      [](SamplingParams& p) { p.eta_cutoff = 0.1; },
      [](SamplingParams& p) { p.top_h = 0.5; },
      [](SamplingParams& p) { p.repetition_penalty = 1.1; },
      [](SamplingParams& p) { p.presence_penalty = 1; },
      [](SamplingParams& p) { p.frequency_penalty = 1; },
      [](SamplingParams& p) { p.no_repeat_ngram = 2; },
      [](SamplingParams& p) { p.min_new_tokens = 1; },
      [](SamplingParams& p) { p.token_rules.suppress_tokens = {1}; },
      [](SamplingParams& p) {
        p.token_rules.sequence_bias = {SequenceBias{{1}, 2}};
      },
      [](SamplingParams& p) { p.token_rules.forced_last = {1}; },
  };
  for (std::size_t i = 0; i < std::size(rules); ++i) {
    SamplingParams changed = plain;
    rules[i](changed);
    EXPECT_FALSE(has_no_processors(changed)) << i;
  }
}

}  // namespace
}  // namespace troupe::engine::generate
