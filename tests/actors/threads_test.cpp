// The same runtime over real threads. No sleeps: threads meet at latches and promises.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <latch>
#include <thread>

#include "actors/runtime/thread_scheduler.h"
#include "tests/actors/messages.h"
#include "transports/inproc/loopback.h"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

struct Threads : testing::Test {
  ThreadScheduler scheduler;
  transports::Loopback network;
  Node node{"main", scheduler, network};
};

template <class M>
Task<typename M::Reply> ask(ActorRef<M> to, M message) {
  auto asking = to.ask(std::move(message));
  typename M::Reply reply = co_await asking.get();
  co_return reply;
}

TEST_F(Threads, AnAskIsAnsweredByTheEngineThread) {
  struct Who {
    using Handled = Messages<Add>;
    std::thread::id* seen;
    int on(Add) {
      *seen = std::this_thread::get_id();
      return 5;
    }
  };
  std::thread::id one, two, control;
  auto first = node.spawn("first", Who{&one}), second = node.spawn("second", Who{&two});
  auto both = [](ActorRef<Add> a, ActorRef<Add> b, std::thread::id* here) -> Task<int> {
    *here = std::this_thread::get_id();
    auto x = a.ask(Add{});
    auto y = b.ask(Add{});
    co_await x.get();
    int last = co_await y.get();
    EXPECT_EQ(*here, std::this_thread::get_id());
    co_return last;
  };
  EXPECT_EQ(run(node, both(first, second, &control)), 5);
  EXPECT_EQ(one, two) << "actors of one executor share its thread";
  EXPECT_NE(one, control);
  EXPECT_NE(control, std::this_thread::get_id());
}

// Two handlers that wait for each other: they end only on separate threads.
struct Meeting {
  using Handled = Messages<Add>;
  std::latch* together;
  int on(Add) {
    together->arrive_and_wait();
    return 1;
  }
};

TEST_F(Threads, ActorsOnTheirOwnExecutorsWorkAtTheSameTime) {
  std::latch together(2);
  auto reference = node.spawn("reference", Meeting{&together}, {.executor = "reference"});
  auto rollout = node.spawn("rollout", Meeting{&together}, {.executor = "rollout"});
  auto both = [](ActorRef<Add> a, ActorRef<Add> b) -> Task<int> {
    auto x = a.ask(Add{});
    auto y = b.ask(Add{});
    const int one = co_await x.get();
    const int two = co_await y.get();
    co_return one + two;
  };
  EXPECT_EQ(run(node, both(reference, rollout)), 2);
}

// A Meeting whose handlers may run at the same time.
struct Crowd : Meeting {
  std::size_t concurrency() const { return 3; }
};

TEST_F(Threads, AConcurrentActorHandlesSeveralMessagesAtTheSameTime) {
  std::latch together(3);
  auto crowd = node.spawn("crowd", Crowd{{&together}});
  auto three = [](ActorRef<Add> to) -> Task<int> {
    auto x = to.ask(Add{});
    auto y = to.ask(Add{});
    auto z = to.ask(Add{});
    int sum = co_await x.get();
    sum += co_await y.get();
    sum += co_await z.get();
    co_return sum;
  };
  EXPECT_EQ(run(node, three(crowd)), 3);
}

TEST_F(Threads, TimersTickDuringAStep) {
  std::promise<void> ticked;
  struct Step {
    using Handled = Messages<Add>;
    std::future<void> until;
    int on(Add) {
      until.wait();  // the step ends when the control executor has ticked ten times
      return 10;
    }
  };
  auto step = node.spawn("step", Step{ticked.get_future()});
  auto tick = [](Node& n, ActorRef<Add> to, std::promise<void>& done) -> Task<int> {
    auto stepping = to.ask(Add{});
    for (int i = 0; i < 10; ++i) {
      auto pause = n.after(milliseconds(1));
      co_await pause.get();
    }
    done.set_value();
    int result = co_await stepping.get();
    co_return result;
  };
  EXPECT_EQ(run(node, tick(node, step, ticked)), 10);
}

TEST_F(Threads, ADeadlinePassesWhileTheHandlerRuns) {
  std::promise<void> release;
  struct Slow {
    using Handled = Messages<Add>;
    std::future<void> until;
    int on(Add) {
      until.wait();
      return 0;
    }
  };
  auto slow = node.spawn("slow", Slow{release.get_future()});
  auto impatient = [](ActorRef<Add> to) -> Task<Errc> {
    auto asking = to.ask(Add{}, milliseconds(5));
    Result<int> result = co_await asking.try_get();
    co_return result.error().code;
  };
  EXPECT_EQ(run(node, impatient(slow)), Errc::timeout);
  release.set_value();
  node.stop();
  EXPECT_EQ(node.stats().unexpected_answers, 1u);
}

TEST_F(Threads, StoppingWithAsksInFlightWaitsForTheHandlerAndEndsTheAsk) {
  std::promise<void> entered, release;
  struct Slow {
    using Handled = Messages<Add>;
    std::promise<void>* entered;
    std::future<void> until;
    int on(Add) {
      entered->set_value();
      until.wait();
      return 0;
    }
  };
  auto slow = node.spawn("slow", Slow{&entered, release.get_future()});
  auto waiting = [](ActorRef<Add> to, std::promise<void>& let_go) -> Task<Errc> {
    auto asking = to.ask(Add{});
    Result<int> result = co_await asking.try_get();
    let_go.set_value();
    co_return result.error().code;
  };
  auto started = start(node, waiting(slow, release));
  entered.get_future().wait();
  node.stop();
  EXPECT_EQ(finish(*started), Errc::cancelled);
}

TEST_F(Threads, ASignalHandlerStopsARun) {
  static Stop stop;
  auto before = std::signal(SIGUSR1, [](int) { stop.request(); });
  auto polite = [](Node& n) -> Task<int> {
    int rounds = 0;
    kill(getpid(), SIGUSR1);
    while (!stop.requested()) {
      auto pause = n.after(milliseconds(1));
      co_await pause.get();
      ++rounds;
    }
    kill(getpid(), SIGUSR1);
    auto forever = n.after(minutes(60));
    Result<void> ended = co_await forever.try_get();
    EXPECT_EQ(ended.error().code, Errc::cancelled);
    co_return rounds;
  };
  run(node, polite(node), &stop);
  EXPECT_TRUE(stop.urgent());
  std::signal(SIGUSR1, before);
}

TEST_F(Threads, ManyNodesTalkAllAtOnce) {
  Node left("left", scheduler, network), right("right", scheduler, network);
  auto a = left.spawn("adder", Adder{}, {.mailbox = 1000}),
       b = right.spawn("adder", Adder{}, {.mailbox = 1000});
  auto chatter = [](Node& from, ActorRef<Add, Fail> to) -> Task<long> {
    const ActorRef<Add> ref = from.ref(to.address(), Messages<Add>{});
    long total = 0;
    for (int round = 0; round < 20; ++round) {
      std::vector<Reply<int>> replies;
      for (int i = 0; i < 20; ++i) replies.push_back(ref.ask(Add{{i, round}}));
      for (Reply<int>& reply : replies) {
        const int sum = co_await reply.get();
        total += sum;
      }
    }
    co_return total;
  };
  auto one = start(left, chatter(left, b)), two = start(right, chatter(right, a)),
       three = start(node, chatter(node, a));
  for (auto* started : {&one, &two, &three}) {
    (*started)->done.wait();
    EXPECT_EQ(finish(**started), 20 * 190 + 20 * 190);
  }
}

TEST_F(Threads, JobsRunInTheOrderPostedFromInsideTheExecutorAndOutside) {
  Executor& executor = scheduler.executor("ordered");
  for (int round = 0; round < 1000; ++round) {
    std::string order;
    std::promise<void> posted, ended;
    executor.post([&] {
      executor.post([&] { order += 'a'; });
      posted.set_value();
    });
    posted.get_future().wait();
    executor.post([&] {
      order += 'b';
      ended.set_value();
    });
    ended.get_future().wait();
    ASSERT_EQ(order, "ab") << "in round " << round;
  }
}

TEST_F(Threads, AMessageIsMovedNotCopied) {
  struct Where {
    using Handled = Messages<Add>;
    int on(Add m) {
      return m.numbers.data() == reinterpret_cast<int*>(static_cast<std::intptr_t>(expected)) ? 1
                                                                                              : 0;
    }
    std::intptr_t expected;
  };
  Add message{{1, 2, 3}};
  auto where = node.spawn("where", Where{reinterpret_cast<std::intptr_t>(message.numbers.data())});
  EXPECT_EQ(run(node, ask<Add>(where, std::move(message))), 1);
}

}  // namespace
}  // namespace troupe::actors
