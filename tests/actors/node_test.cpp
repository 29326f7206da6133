// The runtime over virtual time and a loopback: all outcomes of an ask.
#include "actors/runtime/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/runtime/virtual_scheduler.h"
#include "tests/actors/messages.h"
#include "transports/inproc/loopback.h"

namespace troupe::actors {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using transports::Address;

struct NodeTest : testing::Test {
  VirtualScheduler scheduler;
  transports::Loopback network;
  Node node{"main", scheduler, network};
};

using Adding = ActorRef<Add, Fail>;

Task<int> add(Adding adder, std::vector<int> numbers) {
  auto adding = adder.ask(Add{std::move(numbers)});
  int sum = co_await adding.get();
  co_return sum;
}

template <class R>
Task<Result<R>> outcome(Reply<R> reply) {
  Result<R> result = co_await reply.try_get();
  co_return result;
}

template <class M, class Ref>
Task<Result<typename M::Reply>> outcome(Ref ref, M message, Duration deadline = default_deadline) {
  auto reply = ref.ask(std::move(message), deadline);
  Result<typename M::Reply> result = co_await reply.try_get();
  co_return result;
}

TEST_F(NodeTest, AnAskIsAnswered) {
  auto adder = node.spawn("adder", Adder{});
  EXPECT_EQ(run(node, add(adder, {1, 2, 3})), 6);
  EXPECT_EQ(scheduler.elapsed(), Duration::zero());
}

TEST_F(NodeTest, EveryAnswerLeavesTheTimesOfItsHandler) {
  std::vector<AskRecord> seen;
  Node watched("watched", scheduler, network,
               {.on_answered = [&](const AskRecord& ask) { seen.push_back(ask); }});
  auto sleeper = watched.spawn("sleeper", Sleeper{&watched});
  EXPECT_EQ(run(watched, outcome(sleeper, Wait{10})).value(), 10);
  ASSERT_EQ(seen.size(), 1u) << "time passing is nobody's answer";
  EXPECT_EQ(to_string(seen[0].by), "watched/sleeper");
  EXPECT_EQ(seen[0].type, "wait");
  EXPECT_LE(seen[0].asked, seen[0].began);
  EXPECT_EQ(seen[0].ended - seen[0].began, 10'000'000'000);
  EXPECT_LE(seen[0].ended, seen[0].answered);
  EXPECT_FALSE(seen[0].error);
}

// The handler answers inside a detached coroutine, from which no exception may escape.
TEST_F(NodeTest, AnObserverThatThrowsIsNotCalledAgain) {
  int calls = 0;
  Node watched("watched", scheduler, network, {.on_answered = [&](const AskRecord&) {
                 ++calls;
                 throw Failure({Errc::io, "timeline.jsonl: cannot write"});
               }});
  auto sleeper = watched.spawn("sleeper", Sleeper{&watched});
  testing::internal::CaptureStderr();
  EXPECT_EQ(run(watched, outcome(sleeper, Wait{10})).value(), 10);
  EXPECT_EQ(run(watched, outcome(sleeper, Wait{10})).value(), 10);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("calls are no longer recorded: timeline.jsonl: cannot write"));
  EXPECT_EQ(calls, 1);
}

TEST_F(NodeTest, TwoAsksOnConsecutiveLinesRunAtTheSameTime) {
  auto first = node.spawn("first", Sleeper{&node});
  auto second = node.spawn("second", Sleeper{&node});
  auto both = [](ActorRef<Wait> a, ActorRef<Wait> b) -> Task<int> {
    auto one = a.ask(Wait{10});
    auto two = b.ask(Wait{10});
    const int x = co_await one.get();
    const int y = co_await two.get();
    co_return x + y;
  };
  EXPECT_EQ(run(node, both(first, second)), 20);
  EXPECT_EQ(scheduler.elapsed(), seconds(10));
}

TEST_F(NodeTest, AnActorHandlesOneMessageAtATimeUnlessToldOtherwise) {
  auto alone = node.spawn("alone", Sleeper{&node});
  auto several = node.spawn("several", Sleeper{&node}, {.max_concurrency = 4});
  auto three = [](ActorRef<Wait> to) -> Task<void> {
    auto one = to.ask(Wait{10});
    auto two = to.ask(Wait{10});
    auto tri = to.ask(Wait{10});
    co_await one.get();
    co_await two.get();
    co_await tri.get();
  };
  run(node, three(alone));
  EXPECT_EQ(scheduler.elapsed(), seconds(30));
  run(node, three(several));
  EXPECT_EQ(scheduler.elapsed(), seconds(40));
}

TEST_F(NodeTest, AFailureInAHandlerIsAnErrorReplyAndTheActorLivesOn) {
  auto adder = node.spawn("adder", Adder{});
  Result<void> returned = run(node, outcome(adder, Fail{"returned"}));
  EXPECT_EQ(returned.error().code, Errc::bad_input);
  EXPECT_EQ(returned.error().what, "row 7 is empty");
  EXPECT_EQ(run(node, outcome(adder, Fail{"throw"})).error().code, Errc::io);
  EXPECT_EQ(run(node, add(adder, {2, 2})), 4);
}

TEST_F(NodeTest, GetThrowsTheErrorThatTryGetReturns) {
  auto adder = node.spawn("adder", Adder{});
  auto ask = [](Adding to) -> Task<void> {
    auto failing = to.ask(Fail{"returned"});
    co_await failing.get();
  };
  try {
    run(node, ask(adder));
    FAIL() << "no Failure";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().code, Errc::bad_input);
  }
}

TEST_F(NodeTest, ABugEndsTheActorAndItsMessageIsRepeated) {
  std::vector<Death> deaths;
  Node other("other", scheduler, network,
             {.on_death = [&](const Death& death) { deaths.push_back(death); }});
  auto adder = other.spawn("adder", Adder{});
  auto waiting_behind = [](Adding to) -> Task<Error> {
    auto killing = to.ask(Fail{"bug"});
    auto behind = to.ask(Add{{1}});
    Result<void> killed = co_await killing.try_get();
    EXPECT_EQ(killed.error().code, Errc::internal);
    Result<int> refused = co_await behind.try_get();
    co_return refused.error();
  };
  const Error behind = run(other, waiting_behind(adder));
  EXPECT_EQ(behind.code, Errc::closed);
  const Error later = run(other, outcome(adder, Add{{1}})).error();
  EXPECT_EQ(later.code, Errc::closed);
  EXPECT_THAT(later.what, HasSubstr("other/adder"));
  EXPECT_THAT(later.what, HasSubstr("two and two make five"));
  ASSERT_EQ(deaths.size(), 1u);
  EXPECT_EQ(to_string(deaths[0].who), "other/adder");
}

TEST_F(NodeTest, AFullMailboxRefusesAndSaysHowMuchWaits) {
  auto sleeper = node.spawn("sleeper", Sleeper{&node}, {.mailbox = 2});
  auto flood = [](ActorRef<Wait> to) -> Task<std::vector<Errc>> {
    std::vector<Reply<int>> replies;
    for (int i = 0; i < 5; ++i) replies.push_back(to.ask(Wait{1}));
    std::vector<Errc> refused;
    for (Reply<int>& reply : replies) {
      Result<int> result = co_await reply.try_get();
      if (result) continue;
      refused.push_back(result.error().code);
      EXPECT_THAT(result.error().what, HasSubstr("2 messages are already waiting"));
    }
    co_return refused;
  };
  EXPECT_EQ(run(node, flood(sleeper)), (std::vector<Errc>{Errc::full, Errc::full}));
  EXPECT_EQ(node.stats().refused, 2u);
}

TEST_F(NodeTest, ADeadlinePassesInVirtualTimeAndNamesTheAsk) {
  auto sleeper = node.spawn("sleeper", Sleeper{&node});
  const Error late = run(node, outcome(sleeper, Wait{60}, seconds(5))).error();
  EXPECT_EQ(late.code, Errc::timeout);
  EXPECT_THAT(late.what, HasSubstr("main/sleeper did not answer 'wait' within 5 s"));
  EXPECT_EQ(scheduler.elapsed(), seconds(5));
  scheduler.advance(seconds(60));
  EXPECT_EQ(node.stats().unexpected_answers, 1u) << "the late answer is dropped and counted";
}

TEST_F(NodeTest, AForgottenReplyIsDroppedWhenItComes) {
  auto sleeper = node.spawn("sleeper", Sleeper{&node});
  auto forget = [](ActorRef<Wait> to) -> Task<void> {
    { auto reply = to.ask(Wait{1}); }
    co_return;
  };
  run(node, forget(sleeper));
  scheduler.advance(seconds(2));
  EXPECT_EQ(node.stats().unexpected_answers, 1u);
}

TEST_F(NodeTest, WhoIsNotThereIsNamed) {
  auto adder = node.spawn("adder", Adder{});
  const Error wrong_actor =
      run(node, outcome(node.ref(Address{"main", "addder"}, Adder::Handled{}), Add{{1}})).error();
  EXPECT_EQ(wrong_actor.code, Errc::not_found);
  EXPECT_THAT(wrong_actor.what, HasSubstr("addder"));
  EXPECT_THAT(wrong_actor.what, HasSubstr("this node has: adder"));
  const Error wrong_node =
      run(node, outcome(node.ref(Address{"moon", "adder"}, Adder::Handled{}), Add{{1}})).error();
  EXPECT_EQ(wrong_node.code, Errc::closed);
  EXPECT_THAT(wrong_node.what, HasSubstr("'add' could not be sent to moon/adder"));
  const Error wrong_message =
      run(node, outcome(node.ref(adder.address(), Sleeper::Handled{}), Wait{1})).error();
  EXPECT_EQ(wrong_message.code, Errc::unsupported);
  EXPECT_THAT(wrong_message.what, HasSubstr("it handles: add, fail"));
}

TEST_F(NodeTest, ARefConvertsToOneThatMaySayLess) {
  const ActorRef<Add, Fail> wide = node.spawn("adder", Adder{});
  const ActorRef<Add> narrow = wide;
  EXPECT_EQ(narrow.address(), wide.address());
  static_assert(!std::is_convertible_v<ActorRef<Add>, ActorRef<Add, Fail>>);
  static_assert(std::is_convertible_v<ActorRef<Add, Fail>, ActorRef<Fail, Add>>);
}

TEST_F(NodeTest, StoppingEndsAsksInFlight) {
  auto sleeper = node.spawn("sleeper", Sleeper{&node});
  auto started = start(node, outcome(sleeper, Wait{60}));
  scheduler.run_ready();
  node.stop();
  const Error ended = finish(*started).error();
  EXPECT_EQ(ended.code, Errc::cancelled);
  EXPECT_EQ(scheduler.elapsed(), Duration::zero());
}

TEST_F(NodeTest, AsksFromAnotherNodeLearnThatThisOneStops) {
  Node other("other", scheduler, network);
  auto here = node.spawn("sleeper", Sleeper{&node}, {.mailbox = 4});
  auto from_there = other.ref(here.address(), Sleeper::Handled{});
  auto handled = start(other, outcome(from_there, Wait{60}));
  auto waiting = start(other, outcome(from_there, Wait{60}));
  scheduler.run_ready();
  node.stop();
  scheduler.run_ready();
  EXPECT_EQ(finish(*handled).error().code, Errc::cancelled);
  EXPECT_EQ(finish(*waiting).error().code, Errc::closed);
}

TEST_F(NodeTest, CancellingEndsThisAskAndEveryLaterOne) {
  auto sleeper = node.spawn("sleeper", Sleeper{&node});
  auto started = start(node, outcome(sleeper, Wait{60}));
  scheduler.run_ready();
  node.cancel_asks();
  scheduler.run_ready();
  EXPECT_EQ(finish(*started).error().code, Errc::cancelled);
  EXPECT_EQ(run(node, outcome(sleeper, Wait{1})).error().code, Errc::cancelled);
}

TEST_F(NodeTest, AnUrgentStopCancelsARun) {
  auto sleeper = node.spawn("sleeper", Sleeper{&node});
  Stop stop;
  stop.request();
  EXPECT_EQ(run(node, outcome(sleeper, Wait{1}), &stop).value(), 1)
      << "the first request is for the algorithm to see";
  stop.request();
  EXPECT_EQ(run(node, outcome(sleeper, Wait{1}), &stop).error().code, Errc::cancelled);
}

TEST_F(NodeTest, WaitingForWhatCanNeverComeIsABug) {
  struct Never {
    explicit Never(std::coroutine_handle<>* slot) : waiter(slot) {}
    std::coroutine_handle<>* waiter;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> handle) const { *waiter = handle; }
    void await_resume() const {}
  };
  std::coroutine_handle<> waiter;
  auto stuck = [](std::coroutine_handle<>* handle) -> Task<void> {
    Never never(handle);
    co_await never;
  };
  EXPECT_THROW(run(node, stuck(&waiter)), Bug);
  waiter.resume();
}

TEST_F(NodeTest, ActorsEndInTheReverseOrderOfSpawning) {
  struct Mortal {
    using Handled = Messages<Add>;
    std::string name;
    std::vector<std::string>* ended;
    int on(Add) { return 0; }
    Mortal(std::string n, std::vector<std::string>* e) : name(std::move(n)), ended(e) {}
    Mortal(const Mortal&) = delete;
    ~Mortal() { ended->push_back(name); }
  };
  std::vector<std::string> ended;
  {
    Node brief("brief", scheduler, network);
    brief.spawn("a", std::make_unique<Mortal>("a", &ended), {.executor = "one"});
    brief.spawn("b", std::make_unique<Mortal>("b", &ended), {.executor = "two"});
    brief.spawn("c", std::make_unique<Mortal>("c", &ended), {.executor = "one"});
    EXPECT_TRUE(ended.empty());
  }
  EXPECT_EQ(ended, (std::vector<std::string>{"c", "b", "a"}));
}

TEST_F(NodeTest, MisuseIsABug) {
  auto adder = node.spawn("adder", Adder{});
  EXPECT_THROW(node.spawn("adder", Adder{}), Bug) << "a name twice";
  EXPECT_THROW(node.spawn("many", Adder{}, {.max_concurrency = 2}), Bug)
      << "compute handlers at once";
  EXPECT_THROW((void)adder.ask(Add{{1}}), Bug) << "asking outside of the control executor";
  EXPECT_THROW(run(node, outcome(adder, Add{{1}}, Duration::zero())), Bug) << "no deadline";
  EXPECT_THROW(run(node, outcome(adder, Add{{1}}, Duration::max())), Bug) << "an endless deadline";
}

}  // namespace
}  // namespace troupe::actors
