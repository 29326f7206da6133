// Several tasks of one executor at the same time.
#include "actors/runtime/when_all.h"

#include <gtest/gtest.h>

#include "actors/runtime/virtual_scheduler.h"
#include "tests/actors/messages.h"
#include "transports/inproc/loopback.h"

namespace troupe::actors {
namespace {

TEST(WhenAll, TasksRunAtOnceAndTheFirstFailureIsReportedWhenAllHaveEnded) {
  VirtualScheduler scheduler;
  transports::Loopback network;
  Node node("main", scheduler, network);
  auto sleeper = node.spawn("sleeper", Sleeper{&node}, {.max_concurrency = 4});
  auto adder = node.spawn("adder", Adder{});
  std::vector<int> ended;
  const auto waits = [](ActorRef<Wait> who, int time, std::vector<int>& out) -> Task<void> {
    auto waiting = who.ask(Wait{time});
    const int slept = co_await waiting.get();
    out.push_back(slept);
  };
  const auto fails = [](ActorRef<Fail> who) -> Task<void> {
    auto failing = who.ask(Fail{"no"});
    co_await failing.get();
  };
  std::vector<Task<void>> tasks;
  for (const int wait : {9, 3, 6}) tasks.push_back(waits(sleeper, wait, ended));
  run(node, when_all(std::move(tasks)));
  EXPECT_EQ(ended, (std::vector<int>{3, 6, 9}));
  EXPECT_EQ(scheduler.elapsed(), std::chrono::seconds(9)) << "at the same time";
  std::vector<Task<void>> mixed;
  mixed.push_back(fails(adder));
  mixed.push_back(waits(sleeper, 5, ended));
  EXPECT_THROW(run(node, when_all(std::move(mixed))), Failure);
  EXPECT_EQ(ended.back(), 5) << "the others come to their end first";
  run(node, when_all({}));
}

}  // namespace
}  // namespace troupe::actors
