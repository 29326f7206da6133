#include "engine/serving/fair_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::engine::serving {
namespace {

using testing::ElementsAre;

std::vector<int> drain(FairQueue<int>& queue) {
  std::vector<int> out;
  while (!queue.empty()) out.push_back(queue.pop());
  return out;
}

TEST(FairQueue, TakesFromTheClientsInTurn) {
  FairQueue<int> queue;
  for (int i = 0; i < 4; ++i) queue.push("busy", i);
  queue.push("quiet", 10);
  queue.push("other", 20);
  queue.push("quiet", 11);
  EXPECT_EQ(queue.size(), 7U);
  EXPECT_THAT(drain(queue), ElementsAre(0, 10, 20, 1, 11, 2, 3));
}

TEST(FairQueue, ANewClientWaitsForOneEntryOfEachOther) {
  FairQueue<int> queue;
  for (int i = 0; i < 100; ++i) queue.push("busy", i);
  EXPECT_EQ(queue.pop(), 0);
  queue.push("late", 1000);
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), 1000);
}

TEST(FairQueue, TakesOutWhatIsWanted) {
  FairQueue<int> queue;
  for (int i = 0; i < 6; ++i) queue.push(i % 2 ? "odd" : "even", i);
  EXPECT_THAT(queue.take_if([](int i) { return i % 2 == 1; }), ElementsAre(1, 3, 5));
  EXPECT_EQ(queue.size(), 3U);
  EXPECT_THAT(drain(queue), ElementsAre(0, 2, 4));
}

}  // namespace
}  // namespace troupe::engine::serving
