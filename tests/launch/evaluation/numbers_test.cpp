// Random numbers and scores of the reference tools.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "engine/base/random/sha256.h"
#include "engine/base/text/text.h"
#include "launch/evaluation/metrics.h"
#include "launch/evaluation/python_random.h"

namespace troupe::launch::evaluation {
namespace {

using testing::ElementsAre;

std::string digest(const std::vector<std::size_t>& numbers) {
  std::string text;
  for (const std::size_t each : numbers) text += cat(text.empty() ? "" : ",", each);
  Sha256 hash;
  hash.update(std::as_bytes(std::span(text)));
  return hash.finish().substr(0, 12);
}

TEST(EvaluationNumbers, SamplesAndShufflesAreThoseOfPythonAndNumPy) {
  std::ifstream file(std::string(TROUPE_TEST_DATA) + "/evaluation/random.txt");
  int cases = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    std::size_t n = 0, k = 0;
    std::uint64_t seed = 0;
    std::string samples, shuffled, permuted;
    words >> n >> k >> seed >> samples >> shuffled >> permuted;
    PythonRandom random(seed);
    std::vector<std::size_t> twice = random.sample(n, k);
    for (const std::size_t each : random.sample(n, k)) twice.push_back(each);
    ASSERT_EQ(digest(twice), samples) << line;
    ASSERT_EQ(digest(PythonRandom(seed).shuffled(n)), shuffled) << line;
    ASSERT_EQ(digest(numpy_permutation(n, static_cast<std::uint32_t>(seed))), permuted) << line;
    ++cases;
  }
  EXPECT_EQ(cases, 1000);
}

TEST(EvaluationNumbers, TheFirstExamplesOfThePublishedSeedAreKnown) {
  EXPECT_THAT(PythonRandom(1234).sample(10, 5), ElementsAre(7, 1, 0, 9, 4));
  EXPECT_THAT(PythonRandom(1234).sample(100, 5), ElementsAre(99, 56, 14, 0, 11));
  PythonRandom random(1234);
  EXPECT_THAT(random.sample(7473, 5), ElementsAre(6374, 3610, 957, 61, 742));
  EXPECT_THAT(random.sample(7473, 5), ElementsAre(7462, 6610, 4769, 286, 5501));
}

std::vector<ItemValue> values(std::initializer_list<double> numbers) {
  std::vector<ItemValue> out;
  for (const double each : numbers) out.push_back({each});
  return out;
}

// Expected numbers: lm_eval.api.metrics 0.4.13.
TEST(EvaluationNumbers, MeansAndTheirErrorsAreThoseOfTheReference) {
  const auto all = values({1, 0, 0, 1, 1, 0, 1});
  EXPECT_NEAR(aggregate(Aggregation::mean, all), 0.5714285714285714, 1e-15);
  EXPECT_NEAR(standard_error(Aggregation::mean, all).value(), 0.20203050891044214, 1e-12);
  EXPECT_FALSE(standard_error(Aggregation::mean, values({1})));
  EXPECT_FALSE(standard_error(Aggregation::mean, all, 0));
  EXPECT_EQ(aggregate(Aggregation::median, values({3, 1, 2, 9})), 3);
}

TEST(EvaluationNumbers, PerplexitiesAreThoseOfTheReference) {
  const std::vector<ItemValue> all = {{-12.5, 4}, {-3.25, 2}, {-40, 11}};
  EXPECT_NEAR(aggregate(Aggregation::weighted_perplexity, all), std::exp(55.75 / 17), 1e-12);
  EXPECT_NEAR(aggregate(Aggregation::bits_per_byte, all), 55.75 / 17 / std::log(2), 1e-12);
  EXPECT_NEAR(aggregate(Aggregation::perplexity, all), std::exp(55.75 / 3), 1e-4);
  EXPECT_FALSE(standard_error(Aggregation::weighted_perplexity, all));
  EXPECT_NEAR(standard_error(Aggregation::median, values({1, 2, 3, 4, 5}), 2000).value(),
              1.0030264358507728, 1e-12);
}

TEST(EvaluationNumbers, GroupsPoolTheErrorsOfTheirParts) {
  const std::vector<GroupPart> parts = {{0.5, 0.1, 10}, {0.25, 0.05, 30}};
  EXPECT_NEAR(group_score(parts, true), 0.3125, 1e-15);
  EXPECT_NEAR(group_score(parts, false), 0.375, 1e-15);
  EXPECT_NEAR(group_error(parts, true).value(), 0.04497806482930845, 1e-12);
  EXPECT_NEAR(group_error(parts, false).value(), 0.05590169943749475, 1e-12);
  EXPECT_FALSE(group_error(std::vector<GroupPart>{{0.5, std::nullopt, 1}}, true));
}

}  // namespace
}  // namespace troupe::launch::evaluation
