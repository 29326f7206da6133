// Conversations as transcripts: each line is the frame that is delivered next.
#include <gtest/gtest.h>

#include "tests/actors/messages.h"
#include "tests/support/transcript.h"

namespace troupe::actors {
namespace {

struct AskTwice {
  using Reply = int;
  static constexpr std::string_view name = "ask twice";
  int first = 0, second = 0;
};
[[maybe_unused]] auto fields(AskTwice& m) {
  return std::tie(m.first, m.second);
}

/// A coroutine handler that asks another actor.
struct Manager {
  using Handled = Messages<AskTwice>;
  ActorRef<Add> worker;
  Task<int> on(AskTwice m) {
    auto one = worker.ask(Add{{m.first}});
    auto two = worker.ask(Add{{m.second}});
    const int x = co_await one.get();
    const int y = co_await two.get();
    co_return x * 100 + y;
  }
};

struct ManagerAndWorker : test::Transcript {
  Node home{"home", scheduler, network}, away{"away", scheduler, network};
  ActorRef<Add, Fail> worker = away.spawn("worker", Adder{});
  ActorRef<AskTwice> manager =
      home.spawn("manager", Manager{home.ref(worker.address(), Messages<Add>{})});
};

Task<int> ask_twice(ActorRef<AskTwice> manager) {
  auto asking = manager.ask(AskTwice{7, 9});
  int answer = co_await asking.get();
  co_return answer;
}

TEST_F(ManagerAndWorker, AManagerAsksBothQuestionsBeforeItWaits) {
  auto started = start(home, ask_twice(manager));
  expect("request ask twice").from("home").to("home/manager");
  expect("request add").from("home").to("away/worker");
  expect("request add").from("home").to("away/worker");
  expect("reply add").from("away/worker").to("home");
  expect("reply add").from("away/worker").to("home");
  expect("reply ask twice").from("home/manager").to("home");
  expect_silence();
  EXPECT_EQ(finish(*started), 709);
}

TEST_F(ManagerAndWorker, AnswersInTheWrongOrderFindTheirAsks) {
  auto started = start(home, ask_twice(manager));
  expect("request ask twice").from("home").to("home/manager");
  expect("request add").from("home").to("away/worker");
  expect("request add").from("home").to("away/worker");
  scheduler.run_ready();
  ASSERT_EQ(network.held.size(), 2u);
  std::swap(network.held[0], network.held[1]);
  expect("reply add").from("away/worker").to("home");
  expect("reply add").from("away/worker").to("home");
  expect("reply ask twice").from("home/manager").to("home");
  EXPECT_EQ(finish(*started), 709);
}

TEST_F(ManagerAndWorker, ARepeatedReplyIsDroppedAndCounted) {
  auto started = start(home, ask_twice(manager));
  expect("request ask twice").from("home").to("home/manager");
  expect("request add").from("home").to("away/worker");
  scheduler.run_ready();
  const transports::Frame copy = network.held.back();  // the reply of the worker
  ASSERT_EQ(copy.kind, transports::Kind::reply);
  network.deliver(copy);
  network.deliver(copy);
  scheduler.run_ready();
  EXPECT_EQ(home.stats().unexpected_answers, 1u);
}

TEST_F(ManagerAndWorker, ARepeatedRequestIsHandledOnce) {
  auto started = start(home, ask_twice(manager));
  expect("request ask twice").from("home").to("home/manager");
  scheduler.run_ready();
  network.deliver(network.held.front());
  scheduler.run_ready();
  expect("request add").from("home").to("away/worker");  // the same request again
  EXPECT_EQ(away.stats().duplicate_requests, 1u);
}

}  // namespace
}  // namespace troupe::actors
