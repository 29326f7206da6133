// The control flow of asynchronous runs under 5,000 seeds: delays, loss, repetition and reordering
// of messages, crashes at any time, processes that die, signals, and runs that are extended.
// TROUPE_SIMULATOR_SEEDS: their number. TROUPE_SIMULATOR_SEED: only this one.
#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "tests/simulator/simulation.h"
#include "tests/support/sanitized.h"

namespace troupe::simulator {
namespace {

constexpr std::uint64_t parts = 10;

std::uint64_t number_of(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

class Seeds : public testing::TestWithParam<std::uint64_t> {
 public:
  Seeds() { set_log_level(LogLevel::error); }
  ~Seeds() override { set_log_level(LogLevel::info); }
};
INSTANTIATE_TEST_SUITE_P(Part, Seeds, testing::Range<std::uint64_t>(0, parts));

TEST_P(Seeds, LoseRepeatAndDelayNoSample) {
  if (std::getenv("TROUPE_SIMULATOR_SEED")) GTEST_SKIP() << "one seed is requested";
  const std::uint64_t seeds = number_of("TROUPE_SIMULATOR_SEEDS", test::sanitized ? 200 : 5000);
  for (std::uint64_t seed = GetParam(); seed < seeds; seed += parts) {
    const std::string violation = simulate(Scenario(seed));
    ASSERT_EQ(violation, "") << "repeat it with TROUPE_SIMULATOR_SEED=" << seed;
  }
}

TEST(Simulator, RepeatsOneSeed) {
  set_log_level(LogLevel::error);
  const Scenario scenario(number_of("TROUPE_SIMULATOR_SEED", 1));
  const std::string violation = simulate(scenario);
  EXPECT_EQ(violation, "");
  EXPECT_EQ(simulate(scenario), violation) << "a seed gives one run";
  set_log_level(LogLevel::info);
}

}  // namespace
}  // namespace troupe::simulator
