// The runtime over a faulty transport: a lost frame ends in a timeout, a repeated one counts once,
// and equal seeds give equal runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/runtime/virtual_scheduler.h"
#include "tests/actors/messages.h"
#include "tests/support/simulated_transport.h"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

struct SimulatedNodes {
  explicit SimulatedNodes(std::uint64_t seed, test::Faults faults = {})
      : scheduler(seed), network(seed, faults, [this](Duration delay, Job job) {
          scheduler.later(delay, std::move(job));
        }) {}
  VirtualScheduler scheduler;
  test::SimulatedTransport network;
  Node home{"home", scheduler, network};
  Node away{"away", scheduler, network};
};

Task<Result<int>> add_before(ActorRef<Add> adder, int a, int b, Duration deadline) {
  auto adding = adder.ask(Add{{a, b}}, deadline);
  Result<int> sum = co_await adding.try_get();
  co_return sum;
}

ActorRef<Add> adder_away(SimulatedNodes& world) {
  auto adder = world.away.spawn("adder", Adder{});
  return world.home.ref(adder.address(), Messages<Add>{});
}

TEST(Simulation, ALostRequestEndsInATimeoutThatNamesTheAsk) {
  SimulatedNodes world(1);
  auto adder = adder_away(world);
  world.network.set_filter(
      [](const transports::Frame& frame) { return frame.kind != transports::Kind::request; });
  const Result<int> sum = run(world.home, add_before(adder, 1, 2, seconds(30)));
  EXPECT_EQ(sum.error().code, Errc::timeout);
  EXPECT_THAT(sum.error().what,
              HasSubstr("away/adder did not answer 'add' within 30 s (asked by home)"));
}

TEST(Simulation, ALostReplyEndsInATimeoutToo) {
  SimulatedNodes world(1);
  auto adder = adder_away(world);
  world.network.set_filter(
      [](const transports::Frame& frame) { return frame.kind == transports::Kind::request; });
  EXPECT_EQ(run(world.home, add_before(adder, 1, 2, seconds(30))).error().code, Errc::timeout);
}

TEST(Simulation, ADeadNodeEndsInATimeout) {
  SimulatedNodes world(1);
  auto adder = adder_away(world);
  EXPECT_EQ(run(world.home, add_before(adder, 1, 2, seconds(30))).value(), 3);
  world.network.kill("away");
  EXPECT_EQ(run(world.home, add_before(adder, 1, 2, seconds(30))).error().code, Errc::timeout);
}

TEST(Simulation, RepeatedFramesAreHandledOnceAndAnsweredOnce) {
  SimulatedNodes world(3, {.max_delay = milliseconds(5), .repeat = 1});
  auto adder = adder_away(world);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(run(world.home, add_before(adder, i, i, seconds(30))).value(), 2 * i);
  world.scheduler.advance(seconds(1));
  EXPECT_EQ(world.away.stats().duplicate_requests, 20u);
  EXPECT_EQ(world.home.stats().unexpected_answers, 20u);
}

// Sends many concurrent asks over a bad network; returns a trace of the replies and their times.
std::string trace(std::uint64_t seed) {
  SimulatedNodes world(
      seed,
      {.min_delay = milliseconds(1), .max_delay = milliseconds(50), .loss = 0.2, .repeat = 0.2});
  auto adder = adder_away(world);
  std::vector<std::shared_ptr<RunningTask<Result<int>>>> all;
  for (int i = 0; i < 40; ++i)
    all.push_back(start(world.home, add_before(adder, i, 1000, seconds(2))));
  world.scheduler.advance(seconds(3));
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Result<int> sum = finish(*all[i]);
    EXPECT_EQ(sum.value_or(static_cast<int>(i) + 1000), static_cast<int>(i) + 1000);
    text += sum ? "a" : "t";
  }
  const auto counts = world.network.counts();
  EXPECT_EQ(counts.sent + counts.repeated, counts.lost + counts.delivered);
  return text + std::to_string(counts.delivered) + "/" +
         std::to_string(world.home.stats().unexpected_answers);
}

TEST(Simulation, TheSameSeedIsTheSameRunAndNothingIsLostSilently) {
  const std::string first = trace(11);
  EXPECT_EQ(first, trace(11));
  EXPECT_NE(first, trace(12));
  EXPECT_THAT(first, HasSubstr("a"));
  EXPECT_THAT(first, HasSubstr("t"));
}

TEST(Simulation, ARestartedNodeIsNotTakenForItsPredecessor) {
  SimulatedNodes world(5);
  auto adder = world.away.spawn("adder", Adder{});
  auto asks = [&](Node& node) {
    return run(node, add_before(node.ref(adder.address(), Messages<Add>{}), 1, 2, seconds(5)))
        .value();
  };
  for (int life = 0; life < 3; ++life) {
    Node guest("guest", world.scheduler, world.network);
    EXPECT_EQ(asks(guest), 3);
  }
  EXPECT_EQ(world.away.stats().duplicate_requests, 0u);
}

}  // namespace
}  // namespace troupe::actors
