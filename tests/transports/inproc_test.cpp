// The transports of one process, and the body that their frames carry.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/support/simulated_transport.h"
#include "transports/inproc/loopback.h"

namespace troupe::transports {
namespace {

using test::Faults, test::SimulatedTransport;

Frame frame_to(const std::string& node, std::uint64_t id, const std::string& from = "a") {
  return Frame{{node, "actor"}, {from, ""}, id,
               Kind::request,   "note",     Body::of(static_cast<int>(id))};
}

TEST(Body, AValueIsMovedThrough) {
  auto value = std::make_unique<int>(7);
  const int* where = value.get();
  Body body = Body::of(std::move(value));
  EXPECT_FALSE(body.copyable());
  EXPECT_EQ(body.take<std::unique_ptr<int>>().get(), where);
  EXPECT_TRUE(body.empty());
}

TEST(Body, ASharedValueIsCopiedForTheFirstTakerAndMovedForTheLast) {
  Body body = Body::of(std::vector<int>{1, 2, 3});
  const int* where = body.peek<std::vector<int>>().data();
  Body twin = body;
  const auto first = twin.take<std::vector<int>>();
  EXPECT_NE(first.data(), where);
  const auto last = body.take<std::vector<int>>();
  EXPECT_EQ(last.data(), where);
  EXPECT_EQ(first, last);
}

TEST(Body, OpeningItAsAnotherTypeIsABug) {
  Body body = Body::of(7);
  EXPECT_FALSE(body.holds<float>());
  EXPECT_THROW(body.take<float>(), Bug);
  EXPECT_THROW(Body().take<int>(), Bug);
}

TEST(Loopback, FramesArriveAtOnceOnceAndInOrder) {
  Loopback network;
  std::vector<std::uint64_t> seen;
  network.attach("b", [&](Frame frame) { seen.push_back(frame.id); });
  for (std::uint64_t id : {1, 2, 3}) ASSERT_TRUE(network.send(frame_to("b", id)));
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST(Loopback, ANodeThatIsNotThereIsRefusedByName) {
  Loopback network;
  EXPECT_EQ(network.send(frame_to("b", 1)).error().code, Errc::closed);
  network.attach("b", [](Frame) {});
  EXPECT_TRUE(network.send(frame_to("b", 1)));
  network.detach("b");
  const Result<> sent = network.send(frame_to("b", 1));
  EXPECT_EQ(sent.error().what, "node 'b' is not in this process or has stopped");
}

TEST(Loopback, EachAttachIsANewIncarnation) {
  Loopback network;
  const auto first = network.attach("a", [](Frame) {});
  EXPECT_THROW(network.attach("a", [](Frame) {}), Bug);
  network.detach("a");
  EXPECT_GT(network.attach("a", [](Frame) {}), first);
}

// A clock that runs its jobs when the test says so, in the order of their times.
struct Hostile {
  explicit Hostile(Faults faults, std::uint64_t seed = 1)
      : network(seed, faults, [this](auto delay, auto job) { jobs.emplace(delay, job); }) {
    network.attach("b", [this](Frame frame) { seen.push_back(frame.id); });
  }
  std::vector<std::uint64_t> send(std::uint64_t count) {
    for (std::uint64_t id = 0; id < count; ++id) EXPECT_TRUE(network.send(frame_to("b", id)));
    for (auto& [delay, job] : std::exchange(jobs, {})) job();
    return seen;
  }
  std::multimap<std::chrono::nanoseconds, std::function<void()>> jobs;
  std::vector<std::uint64_t> seen;
  SimulatedTransport network;
};

TEST(SimulatedTransport, WithoutFaultsItIsALoopback) {
  Hostile hostile({});
  EXPECT_EQ(hostile.send(5), (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
}

TEST(SimulatedTransport, FramesAreLostAtTheRequestedRate) {
  Hostile hostile({.loss = 0.25});
  const auto seen = hostile.send(4000).size();
  EXPECT_NEAR(static_cast<double>(seen), 3000, 150);
  EXPECT_EQ(hostile.network.counts().lost + seen, 4000u);
}

TEST(SimulatedTransport, FramesAreRepeatedAndReordered) {
  Hostile hostile({.max_delay = std::chrono::milliseconds(10), .repeat = 0.5});
  const auto seen = hostile.send(1000);
  EXPECT_NEAR(static_cast<double>(seen.size()), 1500, 75);
  EXPECT_FALSE(std::is_sorted(seen.begin(), seen.end()));
}

TEST(SimulatedTransport, TheSeedDecides) {
  const Faults faults{.max_delay = std::chrono::milliseconds(10), .loss = 0.3, .repeat = 0.3};
  EXPECT_EQ(Hostile(faults, 7).send(100), Hostile(faults, 7).send(100));
  EXPECT_NE(Hostile(faults, 7).send(100), Hostile(faults, 8).send(100));
}

TEST(SimulatedTransport, TheDeadNeitherHearNorAreHeard) {
  Hostile hostile({});
  hostile.network.kill("b");
  EXPECT_TRUE(hostile.send(3).empty());
  Hostile other({});
  other.network.kill("a");
  EXPECT_TRUE(other.send(3).empty());
}

TEST(SimulatedTransport, WhatOnlyMovesIsNeverRepeated) {
  Hostile hostile({.repeat = 1});
  Frame frame{{"b", ""}, {"a", ""}, 9, Kind::request, "note", Body::of(std::make_unique<int>(1))};
  ASSERT_TRUE(hostile.network.send(std::move(frame)));
  EXPECT_EQ(hostile.send(0).size(), 1u);
}

}  // namespace
}  // namespace troupe::transports
