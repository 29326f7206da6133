// Selection of the rounds of a benchmark that count.
#include "benchmarks/support/clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

namespace troupe::benchmarks {
namespace {

Pairs of_rounds(int wanted, const std::vector<bool>& disturbed) {
  Pairs pairs(wanted);
  for (std::size_t i = 0; i < disturbed.size() && pairs.wants_more(); ++i)
    pairs.add(disturbed[i] ? 50 : 100, disturbed[i] ? 8 : 2 + 0.125 * static_cast<double>(i),
              disturbed[i]);
  return pairs;
}

TEST(Pairs, OfDisturbedRoundsNoneCountsWhereThereAreEnoughOthers) {
  const Pairs pairs = of_rounds(3, {false, true, false, true, true, false, false});
  EXPECT_FALSE(pairs.wants_more());
  EXPECT_EQ(pairs.time(), 2.25);  // the middle of 2, 2.25, 2.625
  EXPECT_EQ(pairs.ceiling(), 100);
  EXPECT_DOUBLE_EQ(pairs.ratio(100), 1 / 2.25);
  EXPECT_EQ(pairs.middle({1, 9, 3, 9, 9, 7}), 3);
  EXPECT_EQ(pairs.describe(), "median of 3 rounds, 3 that were disturbed not counted");
}

TEST(Pairs, AllCountWhereFewAreUndisturbed) {
  const Pairs pairs = of_rounds(3, {true, true, true, true, false, true, true, true, true, false});
  EXPECT_FALSE(pairs.wants_more());
  EXPECT_EQ(pairs.time(), 8);
  EXPECT_EQ(pairs.describe(), "median of 9 rounds, of which 8 were disturbed");
}

TEST(Pairs, WantNoMoreOnceEnoughAreUndisturbed) {
  EXPECT_FALSE(of_rounds(2, {false, false}).wants_more());
  EXPECT_TRUE(of_rounds(2, {false, true}).wants_more());
  EXPECT_EQ(of_rounds(2, {false, false}).describe(), "median of 2 rounds");
}

// A single round is measured once: instruction counts include every round.
TEST(Pairs, OfOneRoundMakeOneEvenIfDisturbed) {
  const Pairs pairs = of_rounds(1, {true, false});
  EXPECT_FALSE(pairs.wants_more());
  EXPECT_TRUE(pairs.halfway());
  EXPECT_EQ(pairs.time(), 8);
  EXPECT_EQ(pairs.describe(), "one round, which was disturbed");
}

TEST(Pairs, CallOnceHalfway) {
  std::string order;
  const auto round = [&] {
    order += 'r';
    return 1.0;
  };
  for (const int rounds : {1, 2, 5}) {
    order.clear();
    in_pairs(
        rounds, [] { return 1.0; }, round, [&] { order += '|'; });
    const auto before = order.find('|');
    ASSERT_NE(before, std::string::npos);
    EXPECT_EQ(order.find('|', before + 1), std::string::npos) << order;
    // Disturbed rounds, which occur on a loaded machine, are additional to the requested ones.
    EXPECT_GE(before, static_cast<std::size_t>(rounds + 1) / 2);
    EXPECT_GE(order.size() - 1, static_cast<std::size_t>(rounds));
  }
}

// With more threads than processors, some threads wait.
TEST(Disturbance, IsSeenWhereThreadsWaitForAProcessor) {
  if (!std::filesystem::exists("/proc/self/schedstat"))
    GTEST_SKIP() << "this system does not report it";
  const Disturbance since;
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4 * std::thread::hardware_concurrency(); ++i)
    threads.emplace_back([&] {
      while (!done) {
      }
    });
  bool seen = false;
  for (int i = 0; i < 3000 && !seen; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    seen = since.any();
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(seen);
}

}  // namespace
}  // namespace troupe::benchmarks
