// Unit tests of tasks, gates and the virtual scheduler.
#include "actors/runtime/task.h"

#include <gtest/gtest.h>

#include "actors/runtime/virtual_scheduler.h"
#include "actors/runtime/when_all.h"
#include "tests/actors/messages.h"
#include "transports/inproc/loopback.h"

namespace troupe::actors {
namespace {

using std::chrono::seconds;

struct TaskTest : testing::Test {
  VirtualScheduler scheduler;
  transports::Loopback network;
  Node node{"main", scheduler, network};
};

Task<int> one() {
  co_return 1;
}
Task<std::unique_ptr<int>> boxed(int value) {
  co_return std::make_unique<int>(value);
}
Task<void> failing() {
  throw Failure({Errc::io, "no disk"});
  co_return;
}

TEST_F(TaskTest, AMillionAwaitsThatNeverWaitNeedNoStack) {
  auto many = []() -> Task<int> {
    int sum = 0;
    for (int i = 0; i < 1'000'000; ++i) {
      const int x = co_await one();
      sum += x;
    }
    co_return sum;
  };
  EXPECT_EQ(run(node, many()), 1'000'000);
}

TEST_F(TaskTest, ATaskStartsWhenItIsAwaited) {
  bool began = false;
  auto begin = [](bool& flag) -> Task<void> {
    flag = true;
    co_return;
  };
  Task<void> task = begin(began);
  EXPECT_FALSE(began);
  run(node, std::move(task));
  EXPECT_TRUE(began);
}

TEST_F(TaskTest, ExceptionsReachTheAwaiterThroughEveryFrame) {
  auto catching = []() -> Task<Errc> {
    try {
      co_await failing();
    } catch (const Failure& failure) {
      co_return failure.error().code;
    }
    co_return Errc::internal;
  };
  EXPECT_EQ(run(node, catching()), Errc::io);
  EXPECT_THROW(run(node, failing()), Failure);
}

TEST_F(TaskTest, ValuesThatOnlyMovePass) {
  auto unbox = []() -> Task<int> {
    std::unique_ptr<int> box = co_await boxed(42);
    co_return *box;
  };
  EXPECT_EQ(run(node, unbox()), 42);
}

TEST_F(TaskTest, ADestroyedTaskIsNotResumed) {
  auto abandon = [](Node& n, bool& resumed) -> Task<void> {
    auto inner = [](Node& where, bool& went_on) -> Task<void> {
      auto pause = where.after(seconds(5));
      co_await pause.get();
      went_on = true;
    };
    std::optional<Task<void>> task = inner(n, resumed);
    task->operator co_await().await_suspend(std::noop_coroutine());
    auto pause = n.after(seconds(1));
    co_await pause.get();
    task.reset();  // its frame goes before its timer does
  };
  bool resumed = false;
  run(node, abandon(node, resumed));
  scheduler.advance(seconds(10));
  EXPECT_FALSE(resumed);
}

TEST_F(TaskTest, AGateTellsWhenTheLastOneLeft) {
  Gate gate;
  auto visit = [](Node& n, Gate& g, int stay) -> Task<bool> {
    Result<Gate::Holder> inside = g.enter();
    if (!inside) co_return false;
    auto pause = n.after(seconds(stay));
    co_await pause.get();
    co_return true;
  };
  auto early = start(node, visit(node, gate, 5)), later = start(node, visit(node, gate, 9));
  scheduler.run_ready();
  EXPECT_EQ(gate.inside(), 2u);
  auto close = [](Gate& g) -> Task<void> { co_await g.close(); };
  run(node, close(gate));
  EXPECT_EQ(scheduler.elapsed(), seconds(9));
  EXPECT_TRUE(finish(*early) && finish(*later));
  EXPECT_FALSE(run(node, visit(node, gate, 1))) << "nobody enters a closed gate";
}

TEST(VirtualScheduler, JobsOfAnExecutorKeepTheirOrderAndExecutorsInterleaveByTheSeed) {
  auto order = [](std::uint64_t seed) {
    VirtualScheduler scheduler(seed);
    std::string text;
    for (int i = 0; i < 8; ++i) {
      scheduler.executor("letters").post([&text, i] { text += static_cast<char>('a' + i); });
      scheduler.executor("digits").post([&text, i] { text += static_cast<char>('0' + i); });
    }
    scheduler.run_ready();
    return text;
  };
  const std::string text = order(1);
  std::string letters, digits;
  for (const char c : text) (c >= 'a' ? letters : digits) += c;
  EXPECT_EQ(letters, "abcdefgh");
  EXPECT_EQ(digits, "01234567");
  EXPECT_EQ(text, order(1));
  EXPECT_NE(text, order(2));
}

TEST(VirtualScheduler, TimersFireInTheOrderOfTheirTimesAndNotWhenCancelled) {
  VirtualScheduler scheduler;
  Executor& executor = scheduler.executor("main");
  std::string text;
  executor.at(scheduler.now() + seconds(3), [&] { text += 'c'; });
  executor.at(scheduler.now() + seconds(1), [&] { text += 'a'; });
  const TimerId b = executor.at(scheduler.now() + seconds(2), [&] { text += 'b'; });
  EXPECT_TRUE(executor.cancel(b));
  EXPECT_FALSE(executor.cancel(b));
  scheduler.advance(seconds(2));
  EXPECT_EQ(text, "a");
  scheduler.advance(seconds(2));
  EXPECT_EQ(text, "ac");
}

}  // namespace
}  // namespace troupe::actors
