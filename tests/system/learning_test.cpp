// A real model learns from real rows: the final loss of a run is well below the initial one.
#include <numeric>

#include "tests/system/runs.h"

namespace troupe::test {
namespace {

class Learning : public SystemRuns {
 protected:
  void expect_fall(const std::string& algorithm, double to) {
    run(arguments(algorithm, "a", "--set train.steps=40 --set train.save_every=0"));
    const auto all = losses("a");
    ASSERT_EQ(all.size(), 40u);
    const double first = std::accumulate(all.begin(), all.begin() + 8, 0.0) / 8,
                 last = std::accumulate(all.end() - 8, all.end(), 0.0) / 8;
    EXPECT_LT(last, to * first) << "from " << first << " to " << last;
  }
};

TEST_F(Learning, SftOnGsm8kLowersItsLoss) {
  expect_fall("sft", 0.7);
}

TEST_F(Learning, DpoOnHhRlhfLowersItsLoss) {
  expect_fall("dpo", 0.7);
}

}  // namespace
}  // namespace troupe::test
