// Hub and spokes over real sockets of one process: frames arrive whole, once and in order;
// strangers and liars are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>

#include "tests/transports/star.h"
#include "transports/frame.h"

namespace troupe::transports {
namespace {

Frame frame(const std::string& from, const std::string& to, std::uint64_t id,
            Kind kind = Kind::request) {
  return {{to, "actor"}, {from, ""}, id, kind, "note", Body::of(std::vector<float>(id, 0.5f))};
}

class Zmq : public testing::TestWithParam<bool> {
 protected:
  StarOptions options{.tcp = GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Over, Zmq, testing::Bool(),
                         [](const auto& each) { return each.param ? "Tcp" : "Ipc"; });

TEST_P(Zmq, FramesArriveWholeOnceAndInOrderBothWays) {
  Star star(options);
  star.join();
  for (std::uint64_t id = 1; id <= 500; ++id) {
    ASSERT_TRUE(star.hub->send(frame("hub", "one", id)));
    ASSERT_TRUE(star.spokes["two"]->send(frame("two", "hub", id)));
  }
  std::vector<Frame> out = star.at_spokes.wait_for(500), in = star.at_hub.wait_for(500);
  for (std::uint64_t id = 1; id <= 500; ++id) {
    EXPECT_EQ(out[id - 1].id, id);
    EXPECT_EQ(out[id - 1].to, (Address{"one", "actor"}));
    EXPECT_EQ(in[id - 1].from, (Address{"two", ""}));
    EXPECT_EQ(in[id - 1].body.take<std::vector<float>>(), std::vector<float>(id, 0.5f));
  }
  EXPECT_EQ(star.hub->refusals().total() + star.spokes["one"]->refusals().total(), 0u);
}

TEST_P(Zmq, ALargeArrayArrivesWithoutACopyAtTheReceiver) {
  Star star(options);
  star.join();
  const auto values = std::make_shared<std::vector<float>>(4 << 20);
  for (std::size_t i = 0; i < values->size(); ++i) (*values)[i] = static_cast<float>(i);
  Frame sent = frame("hub", "one", 1);
  sent.body = Body::of(SharedArray<float>(values));
  sent.kind = Kind::reply;
  sent.began = 5;
  sent.ended = -7;
  ASSERT_TRUE(star.hub->send(std::move(sent)));
  Frame come = star.at_spokes.wait_for(1)[0];
  EXPECT_EQ(come.began, 5);
  EXPECT_EQ(come.ended, -7);
  const wire::WireBody parts = come.body.to_wire();
  const auto taken = come.body.take<SharedArray<float>>();
  EXPECT_EQ(static_cast<const void*>(taken->data()), parts.parts[0].data);
  EXPECT_TRUE(std::equal(taken->begin(), taken->end(), values->begin(), values->end()));
}

TEST_P(Zmq, TheWindowFillsThenEmptiesAsThePeerConsumes) {
  options.link.window = {8, 1 << 20};
  Star star(options);
  star.hub->attach("hub", [](Frame) {});
  std::uint64_t taken = 0;
  while (star.hub->send(frame("hub", "one", 1 + taken))) ++taken;  // nobody is there yet
  EXPECT_EQ(taken, 8u);
  EXPECT_EQ(star.hub->send(frame("hub", "one", 100)).error().code, Errc::full);
  star.hub->open();
  star.spokes["one"]->attach("one", [&](Frame f) { star.at_spokes.add(std::move(f)); });
  star.spokes["one"]->open();
  star.at_spokes.wait_for(8);
  EXPECT_TRUE(becomes([&] { return star.hub->send(frame("hub", "one", 9)).has_value(); }));
  star.at_spokes.wait_for(9);
}

TEST_P(Zmq, WhatIsQueuedIsSentBeforeClosing) {
  Star star(options);
  star.join();
  for (std::uint64_t id = 1; id <= 200; ++id)
    ASSERT_TRUE(star.spokes["one"]->send(frame("one", "hub", 1000 + id, Kind::reply)));
  star.spokes["one"]->close();
  star.at_hub.wait_for(200);
  const PeerEvent left = star.hub_events.wait_for(3)[2];
  EXPECT_EQ(left.node, "one");
  EXPECT_EQ(left.what, PeerEvent::What::lost);
  EXPECT_EQ(left.why, "it closed the connection");
  EXPECT_EQ(star.hub->send(frame("hub", "one", 1)).error().what,
            "node 'one' is gone: it closed the connection");
}

TEST_P(Zmq, AnAskOfAPeerThatLeavesIsAnsweredWithAnError) {
  Star star(options);
  star.join();
  ASSERT_TRUE(star.hub->send(frame("hub", "one", 77)));
  star.at_spokes.wait_for(1);
  star.spokes["one"]->close();
  Frame error = star.at_hub.wait_for(1)[0];
  EXPECT_EQ(error.kind, Kind::error);
  EXPECT_EQ(error.id, 77u);
  EXPECT_EQ(error.body.take<Error>().code, Errc::closed);
}

TEST_P(Zmq, AnAnswerThatCannotBeSentBecomesTheErrorThatSaysSo) {
  options.link.max_bytes = 100000;
  options.link.max_header_bytes = 2000;
  Star star(options);
  star.join();
  EXPECT_EQ(star.hub->send(frame("hub", "one", 50000)).error().code, Errc::bad_input);
  Frame wordy = frame("hub", "one", 1);
  wordy.body = Body::of(std::string(3000, 'x'));
  EXPECT_EQ(star.hub->send(std::move(wordy)).error().code, Errc::bad_input);
  ASSERT_TRUE(star.spokes["one"]->send(frame("one", "hub", 50000, Kind::reply)));
  Frame error = star.at_hub.wait_for(1)[0];
  EXPECT_EQ(error.kind, Kind::error);
  EXPECT_THAT(error.body.take<Error>().what,
              testing::HasSubstr("cannot send the reply: 'note' has 200"));
}

TEST_P(Zmq, AWrongKeyIsRefusedOnBothSidesOfTheHandshake) {
  options.spokes = {"one"};
  options.link.join = std::chrono::milliseconds(300);
  Star star(options);
  auto stranger = star.make_spoke("one", new_keys());
  stranger->attach("one", [](Frame) {});
  star.hub->open();
  stranger->open();
  const PeerEvent refused = star.spoke_events.wait_for(1)[0];
  EXPECT_EQ(refused.what, PeerEvent::What::lost);
  EXPECT_EQ(refused.why, "it rejected the key of this process");
  EXPECT_TRUE(becomes([&] { return star.hub->refusals().count(Refusal::unknown_key) >= 1; }));
  star.hub_keys = new_keys();
  auto deceived = star.make_spoke("one", star.keys["one"]);
  deceived->open();
  EXPECT_THAT(star.spoke_events.wait_for(2)[1].why, testing::HasSubstr("that its key is correct"));
  EXPECT_EQ(star.hub_events.size(), 0u);
}

TEST_P(Zmq, ASpokeTalksToItsHubOnly) {
  Star star(options);
  star.join();
  EXPECT_EQ(star.spokes["one"]->send(frame("one", "two", 1)).error().code, Errc::unsupported);
  EXPECT_EQ(star.hub->send(frame("hub", "three", 1)).error().code, Errc::closed);
  ASSERT_TRUE(star.spokes["one"]->send(frame("one", "one", 1)));
  star.at_spokes.wait_for(1);
}

// A process that was taken for lost is silent, so the test sends what it would send.
TEST_P(Zmq, AnotherProcessTakesThePlaceOfOneThatWasLost) {
  StarOptions options{{"one"}, GetParam(), {}};
  Star star(options);
  star.join();
  const KeyPair keys = new_keys();
  ASSERT_TRUE(star.hub->replace("one", keys.public_key, "it was too slow"));
  const PeerEvent lost = star.hub_events.wait_for(2)[1];
  EXPECT_EQ(lost.what, PeerEvent::What::lost);
  EXPECT_EQ(lost.incarnation, 1u);
  EXPECT_EQ(lost.why, "it was too slow");
  auto second = star.make_spoke("one", keys);
  second->attach("one", [&](Frame frame) { star.at_spokes.add(std::move(frame)); });
  second->open();
  const PeerEvent joined = star.hub_events.wait_for(3)[2];
  EXPECT_EQ(joined.what, PeerEvent::What::joined);
  EXPECT_EQ(joined.incarnation, 2u);
  // The first one sends a reply, which arrives late, and is refused.
  ASSERT_TRUE(star.spokes["one"]->send(
      {{"hub", ""}, {"one", "actor"}, 77, Kind::reply, "note", Body::of(1)}));
  EXPECT_EQ(star.at_hub.wait_for(1)[0].id, 77u);
  const auto events = star.spoke_events.wait_for(4);  // joined, joined, fenced, lost
  EXPECT_TRUE(std::ranges::any_of(
      events, [](const PeerEvent& each) { return each.what == PeerEvent::What::fenced; }));
  EXPECT_EQ(star.hub->refusals().count(Refusal::fenced), 1u);
  ASSERT_TRUE(
      star.hub->send({{"one", "actor"}, {"hub", ""}, 9, Kind::request, "note", Body::of(1)}));
  EXPECT_EQ(star.at_spokes.wait_for(1)[0].id, 9u);
  EXPECT_EQ(star.hub->replace("three", keys.public_key, "").error().code, Errc::closed);
  EXPECT_EQ(star.hub->replace("one", "no key", "").error().code, Errc::usage);
  second->close();
}

TEST_P(Zmq, AStatelessNodeAnswersEveryRequestOnceWhicheverProcessDoes) {
  StarOptions options{{"one"}, GetParam(), {}};
  options.link.stateless = {"one"};
  Star star(options);
  star.join();
  for (std::uint64_t id : {1, 2, 3})
    ASSERT_TRUE(
        star.hub->send({{"one", "actor"}, {"hub", ""}, id, Kind::request, "note", Body::of(1)}));
  star.at_spokes.wait_for(3);
  const auto answer = [&](Spoke& spoke, std::uint64_t id) {
    ASSERT_TRUE(spoke.send({{"hub", ""}, {"one", "actor"}, id, Kind::reply, "note", Body::of(1)}));
  };
  answer(*star.spokes["one"], 1);
  star.at_hub.wait_for(1);
  const KeyPair keys = new_keys();
  ASSERT_TRUE(star.hub->replace("one", keys.public_key, "it was too slow"));
  auto second = star.make_spoke("one", keys);
  Arrivals<Frame> at_second;
  second->attach("one", [&](Frame frame) { at_second.add(std::move(frame)); });
  second->open();
  const auto again = at_second.wait_for(2);
  EXPECT_EQ(again[0].id, 2u);
  EXPECT_EQ(again[1].id, 3u);
  answer(*star.spokes["one"], 2);  // late: refused, although the number is asked
  EXPECT_TRUE(becomes([&] { return star.hub->refusals().count(Refusal::fenced) == 1; }));
  answer(*second, 2);
  answer(*second, 3);
  const auto answers = star.at_hub.wait_for(3);
  EXPECT_EQ(answers[1].id, 2u);
  EXPECT_EQ(answers[2].id, 3u);
  EXPECT_EQ(star.at_hub.size(), 3u);
  second->close();
}

TEST(ZmqOptions, KeysAndEndpointsThatAreNoneAreRefused) {
  EXPECT_EQ(Hub::bind({"hub", {}, {"x", "y"}, {}, {}}).error().code, Errc::usage);
  EXPECT_EQ(Hub::bind({"hub", {}, new_keys(), {{"short", "one"}}, {}}).error().what,
            "the key of node 'one': expected a CURVE key of 40 Z85 characters, found 5 characters");
  const Error taken = Hub::bind({"hub", {"tcp://256.0.0.1:1"}, new_keys(), {}, {}}).error();
  EXPECT_EQ(taken.code, Errc::io);
  EXPECT_EQ(Spoke::create({"one", "hub", "pigeon://", new_keys(), new_keys().public_key, {}})
                .error()
                .code,
            Errc::usage);
}

}  // namespace
}  // namespace troupe::transports
