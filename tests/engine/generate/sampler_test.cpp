#include "engine/generate/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "engine/base/errors/check.h"
#include "engine/base/random/random.h"

namespace troupe::engine::generate {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

/// Logits whose softmax is exactly `p` up to rounding.
std::vector<double> log_of(std::vector<double> p) {
  for (double& x : p) x = std::log(x);
  return p;
}

struct Case {
  SamplingParams params;
  std::vector<std::int32_t> tokens = {0};
  std::size_t prompt = 1;
  std::vector<std::int32_t> ends;

  LogitsRow row(const std::vector<double>& logits) const {
    return apply_processors(std::span(logits), {params, tokens, prompt, ends});
  }
  std::vector<std::int32_t> kept(const std::vector<double>& logits) const {
    return row(logits).kept;
  }
};

TEST(Distribution, WithoutSettingsItIsTheSoftmax) {
  const Case plain;
  const Distribution d = normalize(plain.row(log_of({0.5, 0.3, 0.2})));
  EXPECT_THAT(d.ids, ElementsAre(0, 1, 2));
  EXPECT_THAT(d.probabilities,
              ElementsAre(DoubleNear(0.5, 1e-15), DoubleNear(0.3, 1e-15), DoubleNear(0.2, 1e-15)));
}

TEST(Distribution, TemperatureDividesLogits) {
  Case c;
  c.params.temperature = 0.5;
  const Distribution d = normalize(c.row(log_of({0.6, 0.4})));
  EXPECT_NEAR(d.probabilities[0], 0.36 / (0.36 + 0.16), 1e-15);
}

TEST(Distribution, TopKKeepsTiesWithTheKth) {
  Case c;
  c.params.top_k = 2;
  EXPECT_THAT(c.kept({1, 3, 2, 2, 0}), ElementsAre(1, 2, 3));
  c.params.top_k = 9;
  EXPECT_THAT(c.kept({1, 3, 2, 2, 0}), ElementsAre(0, 1, 2, 3, 4));
}

TEST(Distribution, TopPKeepsTheTokenThatReachesTheMass) {
  Case c;
  c.params.top_p = 0.7;
  EXPECT_THAT(c.kept(log_of({0.1, 0.5, 0.3, 0.1})), ElementsAre(1, 2));
  c.params.top_p = 0.4;
  EXPECT_THAT(c.kept(log_of({0.1, 0.5, 0.3, 0.1})), ElementsAre(1));
  c.params.top_p = 1e-9;
  EXPECT_THAT(c.kept(log_of({0.25, 0.25, 0.25, 0.25})).size(), 1U);
}

TEST(Distribution, TopPWithoutItsShortcutKeepsTheSame) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal(0, 4);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> logits(100);
    for (double& z : logits) z = normal(random);
    Case c;
    c.params.top_p = 0.05 + 0.9 * uniform(1, 2, round);
    // Oracle: a token stays when those strictly more likely hold less than top_p.
    const Distribution all = normalize(Case{}.row(logits));
    std::vector<std::int32_t> expected;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      double above = 0;
      for (std::size_t j = 0; j < logits.size(); ++j)
        above += logits[j] > logits[i] ? all.probabilities[j] : 0;
      if (above < c.params.top_p) expected.push_back(static_cast<std::int32_t>(i));
    }
    EXPECT_EQ(c.kept(logits), expected);
  }
}

TEST(Distribution, MinPIsRelativeToTheMostLikely) {
  Case c;
  c.params.min_p = 0.25;
  EXPECT_THAT(c.kept(log_of({0.6, 0.16, 0.14, 0.1})), ElementsAre(0, 1));
}

TEST(Distribution, EpsilonKeepsTheMostLikelyEvenBelowTheCutoff) {
  Case c;
  c.params.epsilon_cutoff = 0.3;
  EXPECT_THAT(c.kept(log_of({0.4, 0.35, 0.25})), ElementsAre(0, 1));
  c.params.epsilon_cutoff = 0.9;
  EXPECT_THAT(c.kept(log_of({0.4, 0.35, 0.25})), ElementsAre(0));
}

TEST(Distribution, EveryFilterKeepsAsManyTokensAsBeamsNeed) {
  const std::vector<double> logits = log_of({0.001, 0.6, 0.05, 0.2, 0.12, 0.029});
  const auto kept = [&](const SamplingParams& params) {
    const std::vector<std::int32_t> tokens{0};
    ProcessorContext context{params, tokens, 1, {}};
    context.min_kept = 3;
    return apply_processors(std::span(logits), context).kept;
  };
  SamplingParams p;
  p.top_k = 1;
  EXPECT_THAT(kept(p), ElementsAre(1, 3, 4));
  p = {.top_p = 0.01};
  EXPECT_THAT(kept(p), ElementsAre(1, 3, 4));
  p = {.min_p = 0.9};
  EXPECT_THAT(kept(p), ElementsAre(1, 3, 4));
  p = {.epsilon_cutoff = 0.9};
  EXPECT_THAT(kept(p), ElementsAre(1, 3, 4));
  p = {.eta_cutoff = 0.9};
  EXPECT_THAT(kept(p), ElementsAre(1, 3, 4));
  // The entropy is 1.142: token 1 has the surprisal 0.511, token 3 1.609, token 4 2.12.
  p = {.typical_p = 0.01};
  EXPECT_THAT(kept(p), ElementsAre(1, 3, 4));
  p = {.top_k = 4};
  EXPECT_THAT(kept(p), ElementsAre(1, 2, 3, 4)) << "a weaker filter keeps what it keeps alone";
}

TEST(Distribution, TypicalPrefersTokensAsSurprisingAsTheEntropy) {
  // Entropy is 1.21 nats; surprises are 0.69, 1.39, 2.08, 2.08: the closest is token 1, then token
  // 0.
  Case c;
  c.params.typical_p = 0.2;
  EXPECT_THAT(c.kept(log_of({0.5, 0.25, 0.125, 0.125})), ElementsAre(1));
  c.params.typical_p = 0.6;
  EXPECT_THAT(c.kept(log_of({0.5, 0.25, 0.125, 0.125})), ElementsAre(0, 1));
}

TEST(Distribution, RepetitionPenaltyTouchesPromptAndOutputOnceEach) {
  Case c;
  c.params.repetition_penalty = 2;
  c.tokens = {0, 1, 1};
  EXPECT_THAT(c.row({3, -3, 3}).score, ElementsAre(1.5, -6, 3));
}

TEST(Distribution, FrequencyAndPresenceCountOutputOnly) {
  Case c;
  c.params.frequency_penalty = 0.5;
  c.params.presence_penalty = 1;
  c.tokens = {0, 1, 1};
  c.prompt = 1;
  EXPECT_THAT(c.row({3, 3, 3}).score, ElementsAre(3, 1, 3));
}

TEST(Distribution, NoNgramStandsTwice) {
  Case c;
  c.params.no_repeat_ngram = 2;
  c.tokens = {1, 2, 1, 3, 1};
  EXPECT_THAT(c.kept({0, 0, 0, 0}), ElementsAre(0, 1));
  c.params.no_repeat_ngram = 1;
  EXPECT_THAT(c.kept({0, 0, 0, 0}), ElementsAre(0));
  c.params.no_repeat_ngram = 9;
  EXPECT_THAT(c.kept({0, 0, 0, 0}), ElementsAre(0, 1, 2, 3));
}

TEST(Distribution, EndTokensAreBannedUntilMinNewTokens) {
  Case c;
  c.params.min_new_tokens = 2;
  c.ends = {2};
  c.tokens = {0, 1};
  EXPECT_THAT(c.kept({0, 0, 9}), ElementsAre(0, 1));
  c.tokens = {0, 1, 1};
  EXPECT_THAT(c.kept({0, 0, 9}), ElementsAre(0, 1, 2));
}

TEST(Distribution, BanningEverythingIsRefused) {
  Case c;
  c.params.no_repeat_ngram = 1;
  c.tokens = {0, 1};
  EXPECT_THROW(c.kept({0, 0}), Failure);
}

TEST(Distribution, GreedyKnowsPenaltiesButNoFilters) {
  Case c;
  c.params.greedy = true;
  c.params.top_k = 1;
  c.params.repetition_penalty = 10;
  c.tokens = {2};
  const LogitsRow row = c.row({1, 2, 3});
  EXPECT_EQ(row.kept.size(), 3U);
  EXPECT_EQ(argmax(row), 1);
  EXPECT_EQ(argmax(Case{}.row({1, 2, 2})), 1) << "the lowest id among equals";
}

TEST(Sample, IsTheInverseOfTheCumulatedProbabilities) {
  const Distribution d{{4, 7, 9}, {0.25, 0.5, 0.25}};
  EXPECT_EQ(sample(d, 0), 4);
  EXPECT_EQ(sample(d, 0.2499), 4);
  EXPECT_EQ(sample(d, 0.25), 7);
  EXPECT_EQ(sample(d, 0.7499), 7);
  EXPECT_EQ(sample(d, 0.75), 9);
  EXPECT_EQ(sample({{1, 2, 3}, {0.3, 0.6999, 0}}, 0.99999), 2)
      << "a token without probability is never drawn";
}

TEST(Sample, FrequenciesFollowProbabilities) {
  SamplingParams params;
  const std::vector<float> logits = {std::log(0.5F), std::log(0.2F), std::log(0.3F)};
  const std::vector<std::int32_t> tokens = {0};
  std::vector<int> counts(3);
  const ProcessorContext context{params, tokens, 1, {}};
  for (std::uint64_t sample = 0; sample < 20000; ++sample)
    ++counts[sample_token(logits, context, sampling_row(context, sample))];
  // Four standard deviations of a binomial count are below 290.
  EXPECT_NEAR(counts[0], 10000, 290);
  EXPECT_NEAR(counts[1], 4000, 290);
  EXPECT_NEAR(counts[2], 6000, 290);
}

TEST(Sample, SeedSampleAndPositionDecide) {
  SamplingParams params;
  const std::vector<float> logits(1000, 0.0F);
  const std::vector<std::int32_t> one = {5}, two = {5, 6};
  const auto token = [&](std::uint64_t seed, std::uint64_t sample,
                         const std::vector<std::int32_t>& tokens) {
    params.seed = seed;
    const ProcessorContext context{params, tokens, 1, {}};
    return sample_token(logits, context, sampling_row(context, sample));
  };
  EXPECT_EQ(token(1, 2, one), token(1, 2, one));
  EXPECT_EQ(token(1, 2, one), static_cast<std::int32_t>(1000 * uniform(1, 2, 1)));
  EXPECT_NE(token(1, 2, one), token(2, 2, one));
  EXPECT_NE(token(1, 2, one), token(1, 3, one));
  EXPECT_NE(token(1, 2, one), token(1, 2, two));
}

}  // namespace
}  // namespace troupe::engine::generate
