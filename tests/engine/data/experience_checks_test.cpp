// What no sample can have is found and named.
#include "engine/data/experience_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <vector>

namespace troupe::engine::data {
namespace {

struct CheckedSample {
  std::vector<std::int64_t> tokens{3, 4, 5}, mask{0, 1, 1}, versions{-7, 0, 2};
  std::vector<double> logp{9, -0.5, 0};
  std::optional<double> reward = 1.0;
};

constexpr SampleBounds bounds{.vocabulary = 10, .longest = 3, .newest = 2};

std::optional<BadValue> found_in(const CheckedSample& s) {
  return find_bad_value({s.tokens, s.mask, s.logp, s.versions, s.reward}, bounds);
}

/// The field that is named after `change`; the sentence begins with it.
std::string named_after(const std::function<void(CheckedSample&)>& change) {
  CheckedSample sample;
  change(sample);
  const auto found = found_in(sample);
  if (!found) return "";
  EXPECT_TRUE(found->what.starts_with(found->field + ": expected ")) << found->what;
  return found->field;
}

TEST(ExperienceChecks, APlainSampleHasNoBadValue) {
  EXPECT_FALSE(found_in({}));
  CheckedSample without_reward;
  without_reward.reward.reset();
  EXPECT_FALSE(found_in(without_reward));
  const auto rounded = [](CheckedSample& s) { s.logp[2] = 3e-6; };
  EXPECT_EQ(named_after(rounded), "") << "x - log(sum) in float32";
}

TEST(ExperienceChecks, EachColumnIsChecked) {
  constexpr double infinite = std::numeric_limits<double>::infinity(),
                   none = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(named_after([](CheckedSample& s) { s.tokens[0] = 10; }), "token_ids[0]");
  EXPECT_EQ(named_after([](CheckedSample& s) { s.tokens[2] = -2147483634; }), "token_ids[2]");
  EXPECT_EQ(named_after([](CheckedSample& s) { s.tokens.push_back(1); }), "token_ids")
      << "too long";
  EXPECT_EQ(named_after([](CheckedSample& s) { s.mask[1] = 2; }), "loss_mask[1]");
  EXPECT_EQ(named_after([](CheckedSample& s) { s.mask.pop_back(); }), "loss_mask");
  EXPECT_EQ(named_after([](CheckedSample& s) { s.logp.pop_back(); }), "logprobs");
  EXPECT_EQ(named_after([](CheckedSample& s) { s.versions.push_back(1); }), "weight_versions");
  for (const double value : {0.0219, 7.4e36, -infinite, -1e300, none})
    EXPECT_EQ(named_after([&](CheckedSample& s) { s.logp[1] = value; }), "logprobs[1]") << value;
  for (const std::int64_t version : {3, -1})
    EXPECT_EQ(named_after([&](CheckedSample& s) { s.versions[2] = version; }),
              "weight_versions[2]");
  for (const double value : {infinite, -infinite, none, 1e39})
    EXPECT_EQ(named_after([&](CheckedSample& s) { s.reward = value; }), "reward") << value;
}

}  // namespace
}  // namespace troupe::engine::data
