// Computations in steps: what the node handles between two of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "actors/runtime/thread_scheduler.h"
#include "actors/runtime/virtual_scheduler.h"
#include "tests/actors/messages.h"
#include "transports/inproc/loopback.h"

namespace troupe::actors::steps_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Counts to a number, one step at a time, and records what it handles.
struct Count {
  using Reply = int;
  static constexpr std::string_view name = "count";
  int to = 0;
};
inline auto fields(Count& m) {
  return std::tie(m.to);
}

struct Log {
  std::vector<std::string> lines;
  std::function<void(int)> at_step = [](int) {};
};

struct Counter {
  using Handled = Messages<Count, Add, Fail>;
  using Interrupting = Messages<Add>;
  Log* log;
  int on(Count m) { return m.to; }
  Stepwise<int> in_steps(Count m) {
    log->lines.push_back("begin");
    return {[this, to = m.to, now = 0]() mutable -> std::optional<int> {
      log->at_step(++now);
      if (now == 13) check(false, "thirteen");
      if (now == 17) throw Failure({Errc::bad_input, "seventeen"});
      log->lines.push_back(cat("step ", now));
      return now == to ? std::optional(now) : std::nullopt;
    }};
  }
  int on(const Add& m) {
    log->lines.push_back("add");
    return static_cast<int>(m.numbers.size());
  }
  void on(const Fail&) { log->lines.push_back("waited"); }
};
static_assert(HandlesInSteps<Counter, Count> && !HandlesInSteps<Counter, Add>);

struct StepsTest : testing::Test {
  ThreadScheduler scheduler;
  transports::Loopback network;
  Log log;
  Node node{"main", scheduler, network};
  using Ref = ActorRef<Count, Add, Fail>;
  Ref counter = node.spawn("counter", Counter{&log});

  /// Sends a message in the middle of a step, and returns when the node has received it.
  template <class M>
  void send_within_step(M message, std::vector<Reply<typename M::Reply>>& replies) {
    std::promise<void> received;
    node.control().post([&] {
      replies.push_back(counter.ask(std::move(message)));
      node.control().post([&] { received.set_value(); });
    });
    received.get_future().wait();
  }
};

Task<int> counted(StepsTest::Ref counter, int to) {
  auto counting = counter.ask(Count{to});
  co_return co_await counting.get();
}

TEST_F(StepsTest, AnInterruptingMessageIsHandledBeforeTheNextStep) {
  std::vector<Reply<int>> added;
  std::vector<Reply<void>> waiting;
  log.at_step = [&](int now) {
    if (now == 2) send_within_step(Fail{}, waiting);
    if (now == 3) send_within_step(Add{{1}}, added);
  };
  EXPECT_EQ(run(node, counted(counter, 5)), 5);
  node.stop();
  log.lines.resize(7);
  EXPECT_THAT(log.lines,
              ElementsAre("begin", "step 1", "step 2", "step 3", "add", "step 4", "step 5"))
      << "the other message waits for the end";
}

TEST_F(StepsTest, ManyInterruptingMessagesAreRefusedAsByAFullMailbox) {
  std::vector<Reply<int>> added;
  log.at_step = [&](int now) {
    if (now != 1) return;
    for (int i = 0; i < 65; ++i) send_within_step(Add{{i}}, added);
  };
  EXPECT_EQ(run(node, counted(counter, 2)), 2);
  node.stop();
  EXPECT_EQ(node.stats().refused, 1u);
  EXPECT_EQ(std::ranges::count(log.lines, "add"), 64);
}

Task<std::string> error_of(StepsTest::Ref counter, int to) {
  auto counting = counter.ask(Count{to});
  const auto outcome = co_await counting.try_get();
  co_return outcome ? "" : outcome.error().what;
}

TEST_F(StepsTest, TheErrorOfAStepIsThatOfTheMessage) {
  EXPECT_THAT(run(node, error_of(counter, 14)), HasSubstr("main/counter died handling 'count'"));
  Ref second = node.spawn("second", Counter{&log});
  log.at_step = [](int now) {
    if (now == 12) throw Failure({Errc::bad_input, "twelve"});
  };
  EXPECT_EQ(run(node, error_of(second, 14)), "twelve");
  log.at_step = [](int) {};
  EXPECT_EQ(run(node, counted(second, 4)), 4) << "the actor lives";
}

TEST_F(StepsTest, AStoppingNodeEndsAComputation) {
  std::promise<void> stops;
  log.at_step = [&](int now) {
    if (now == 3) stops.set_value();
  };
  std::vector<Reply<int>> counting;
  node.control().post([&] { counting.push_back(counter.ask(Count{1 << 30})); });
  stops.get_future().wait();
  node.stop();
  EXPECT_LT(log.lines.size(), std::size_t{1} << 30);
  counting.clear();
}

TEST(StepsOverVirtualTime, AreTakenInOrder) {
  VirtualScheduler scheduler;
  transports::Loopback network;
  Log log;
  Node node("main", scheduler, network);
  EXPECT_EQ(run(node, counted(node.spawn("counter", Counter{&log}), 3)), 3);
  EXPECT_THAT(log.lines, ElementsAre("begin", "step 1", "step 2", "step 3"));
}

}  // namespace
}  // namespace troupe::actors::steps_test
