
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <map>
#include <numbers>

#include "algorithms/health.h"
#include "engine/base/random/random.h"

namespace troupe::algorithms {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// A falling loss with normal noise of 2 %, and the given losses at some steps.
std::vector<std::int64_t> spikes_in(const std::map<std::int64_t, double>& others,
                                    std::uint64_t seed) {
  LossSpikes spikes;
  std::vector<std::int64_t> found;
  for (std::int64_t step = 0; step < 400; ++step) {
    const auto at = static_cast<std::uint64_t>(step);
    const double noise = std::sqrt(-2 * std::log(1 - uniform(seed, 0, at))) *
                         std::cos(2 * std::numbers::pi * uniform(seed, 1, at));
    const double usual = 2 + 4 * std::exp(-static_cast<double>(step) / 60);
    const auto other = others.find(step);
    if (spikes.add(other == others.end() ? usual * (1 + 0.02 * noise) : other->second))
      found.push_back(step);
  }
  return found;
}

TEST(LossSpikes, NoiseIsNone) {
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    EXPECT_THAT(spikes_in({}, seed), ElementsAre()) << seed;
}

TEST(LossSpikes, EachIsFoundOnce) {
  const double infinite = std::numeric_limits<double>::infinity();
  const std::map<std::int64_t, double> losses{
      {150, 4.5}, {151, 4}, {152, 3.5}, {250, infinite}, {300, 3.4}};
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    EXPECT_THAT(spikes_in(losses, seed), ElementsAre(150, 300)) << seed;
}

TEST(LossSpikes, AreNotKnownWithoutStepsBefore) {
  LossSpikes spikes;
  EXPECT_FALSE(spikes.add(2));
  EXPECT_FALSE(spikes.add(9));
}

TEST(LossSpikes, AreReportedWithTheNormOfTheGradient) {
  HealthMonitor monitor("pretrain");
  for (std::int64_t step = 1; step <= 30; ++step)
    EXPECT_THAT(monitor.check(step, {{"loss", 3}, {"grad_norm", 1}}), ElementsAre());
  EXPECT_THAT(monitor.check(31, {{"loss", 3.9}, {"grad_norm", 12.5}}),
              ElementsAre(AllOf(HasSubstr("step 31: loss spike: 3.9, 3 on average before"),
                                HasSubstr("gradient norm 12.5"))));
  EXPECT_THAT(monitor.check(32, {{"loss", 3.8}, {"grad_norm", 9}}), ElementsAre());
}

TEST(LossSpikes, OfReinforcementLearningAreNotReported) {
  HealthMonitor monitor("grpo");
  for (std::int64_t step = 1; step <= 60; ++step)
    EXPECT_THAT(monitor.check(step, {{"loss", step == 50 ? 1 : 0.01}, {"reward", 0.5}}),
                ElementsAre());
}

}  // namespace
}  // namespace troupe::algorithms
