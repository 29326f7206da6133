// The simulator finds every bug of planted_bugs.cmake, each within a few hundred seeds, and none
// where none is switched on.
#include <gtest/gtest.h>

#include <iostream>
#include <sstream>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "tests/simulator/planted.h"
#include "tests/simulator/simulation.h"
#include "tests/support/sanitized.h"

namespace troupe::simulator {
namespace {

constexpr std::uint64_t max_seeds = 500;

std::vector<std::string> names() {
  std::istringstream text(TROUPE_PLANTED_BUGS);
  std::vector<std::string> out;
  for (std::string name; text >> name;) out.push_back(name);
  return out;
}

class PlantedBug : public testing::TestWithParam<std::string> {
 public:
  PlantedBug() { set_log_level(LogLevel::error); }
  ~PlantedBug() override {
    set_log_level(LogLevel::info);
    planted_bug = "";
  }
};
INSTANTIATE_TEST_SUITE_P(Simulator, PlantedBug, testing::ValuesIn(names()),
                         [](const auto& bug) { return bug.param; });

TEST_P(PlantedBug, IsFound) {
  if (test::sanitized) GTEST_SKIP() << "a run that a bug stops for ever leaks its coroutines";
  const std::string name = GetParam();
  planted_bug = name;
  std::string violation;
  std::uint64_t seeds = 0;
  while (violation.empty() && seeds < max_seeds) violation = simulate(Scenario(seeds++));
  EXPECT_NE(violation, "") << "not found by " << max_seeds << " seeds";
  RecordProperty("seeds", std::to_string(seeds));
  std::cout << name << ": after " << seeds << " seeds: " << violation << '\n';
}

TEST(PlantedBugs, AreFifteenOrMore) {
  EXPECT_GE(names().size(), 15u);
}

TEST(PlantedBugs, ThatAreSwitchedOffChangeNothing) {
  set_log_level(LogLevel::error);
  for (std::uint64_t seed = 0; seed < 50; ++seed) EXPECT_EQ(simulate(Scenario(seed)), "");
  set_log_level(LogLevel::info);
}

}  // namespace
}  // namespace troupe::simulator
