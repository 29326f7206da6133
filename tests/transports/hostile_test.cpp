// Input from peers with and without a key: raw ZeroMQ sockets that violate the protocol.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <zmq.hpp>

#include "tests/transports/star.h"
#include "transports/frame.h"

namespace troupe::transports {
namespace {

using wire::Control;

/// A DEALER that sends arbitrary messages.
class Raw {
 public:
  Raw(const Star& star, const std::string& own_name, const KeyPair* keys)
      : socket_(context_, zmq::socket_type::dealer) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvtimeo, 20000);
    if (!own_name.empty()) socket_.set(zmq::sockopt::routing_id, own_name);
    if (keys) {
      socket_.set(zmq::sockopt::curve_serverkey, star.hub_keys.public_key);
      socket_.set(zmq::sockopt::curve_publickey, keys->public_key);
      socket_.set(zmq::sockopt::curve_secretkey, keys->secret_key);
    }
    socket_.connect(star.hub->endpoints()[0]);
  }
  void say(const std::vector<std::string>& parts) {
    for (std::size_t i = 0; i < parts.size(); ++i)
      socket_.send(zmq::buffer(parts[i]),
                   i + 1 < parts.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
  }
  void say_message(const wire::WireBody& message) {
    std::vector<std::string> parts{message.header};
    for (const auto& part : message.parts)
      parts.emplace_back(reinterpret_cast<const char*>(part.data), part.size);
    say(parts);
  }
  void hello(std::uint64_t session = 1) {
    say_message(wire::encode_control({Control::Kind::hello, session, 100, 1 << 20}));
  }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

wire::WireBody frame(const std::string& from, const std::string& to, std::size_t numbers = 3) {
  return wire::encode_frame({{to, "actor"},
                             {from, ""},
                             1,
                             Kind::request,
                             "note",
                             Body::of(std::vector<float>(numbers, 1.0f))});
}

struct Hostile : testing::Test {
  explicit Hostile(LinkOptions link = {}) : star({{"one", "two"}, true, std::move(link)}) {
    star.hub->attach("hub", [this](Frame come) { star.at_hub.add(std::move(come)); });
    star.hub->open();
    one = std::make_unique<Raw>(star, "", &star.keys["one"]);
    one->hello();
    star.hub_events.wait_for(1);
  }
  bool counted(Refusal kind, std::uint64_t count = 1) {
    return becomes([&] { return star.hub->refusals().count(kind) >= count; });
  }
  Star star;
  std::unique_ptr<Raw> one;
};

TEST_F(Hostile, AKeyIsANodeAndCannotSpeakForAnother) {
  one->say_message(frame("two", "hub"));
  EXPECT_TRUE(counted(Refusal::impersonation));
  one->say_message(frame("one", "two"));
  EXPECT_TRUE(counted(Refusal::misdirected));
  one->say_message(frame("one", "hub"));
  EXPECT_EQ(star.at_hub.wait_for(1)[0].from.node, "one");
  EXPECT_EQ(star.at_hub.size(), 1u);
  EXPECT_EQ(star.hub->refusals().total(), 2u);
}

TEST_F(Hostile, ARoutingIdInTheNameOfAnotherNodeTakesNothingFromIt) {
  Raw squatter(star, "two", &star.keys["one"]);
  squatter.say_message(frame("two", "hub"));
  EXPECT_TRUE(counted(Refusal::second_connection));
  auto& two = *star.spokes["two"];
  two.attach("two", [this](Frame come) { star.at_spokes.add(std::move(come)); });
  two.open();
  EXPECT_EQ(star.hub_events.wait_for(2)[1].node, "two");
  ASSERT_TRUE(
      star.hub->send({{"two", "actor"}, {"hub", ""}, 9, Kind::request, "note", Body::of(1)}));
  EXPECT_EQ(star.at_spokes.wait_for(1)[0].id, 9u);
}

TEST_F(Hostile, ASecondConnectionOfAKeyIsRefusedWhileTheFirstLivesAndAfter) {
  Raw twin(star, "", &star.keys["one"]);
  twin.hello(2);
  twin.say_message(frame("one", "hub"));
  twin.say_message(wire::encode_control({Control::Kind::heartbeat, 2, 0, 0}));
  EXPECT_TRUE(counted(Refusal::second_connection, 3));
  one->say_message(wire::encode_control({Control::Kind::bye, 1, 0, 0}));
  star.hub_events.wait_for(2);
  twin.hello(3);
  EXPECT_TRUE(counted(Refusal::second_connection, 4));
  EXPECT_EQ(star.at_hub.size(), 0u);
}

TEST_F(Hostile, AFrameBeforeItsHelloIsRefused) {
  Raw two(star, "", &star.keys["two"]);
  two.say_message(frame("two", "hub"));
  EXPECT_TRUE(counted(Refusal::misdirected));
}

TEST_F(Hostile, MalformedMessagesAreRefusedAndTheLinkLives) {
  const wire::WireBody good = frame("one", "hub", 1000);
  one->say({good.header.substr(0, good.header.size() / 4)});
  one->say({""});
  one->say({"\x02\x00"});
  one->say({std::string(1000, '\xff')});
  one->say_message(
      wire::encode_control({Control::Kind::grant, 1, 1000, 1000}));  // credit for what was not sent
  one->hello();                                                      // a second one
  one->say({good.header, std::string(3996, 'x')});  // the body is decoded when it is taken
  EXPECT_TRUE(counted(Refusal::malformed, 6));
  Frame truncated = star.at_hub.wait_for(1)[0];
  const auto taken = truncated.body.try_take<std::vector<float>>();
  EXPECT_THAT(taken.error().what,
              testing::HasSubstr("message 'note' from node 'one': expected 1000 elements of 4 "
                                 "bytes, found a part of 3996"));
}

TEST_F(Hostile, ABundleIsSplitAndADamagedOneRefused) {
  const wire::WireBody good = frame("one", "hub");
  const std::string bundle = wire::bundle({good, good, good}).header;
  one->say({bundle});
  EXPECT_EQ(star.at_hub.wait_for(3)[2].from.node, "one");
  one->say({bundle.substr(0, bundle.size() - 1)});
  one->say({bundle + "x"});
  one->say({bundle, "a part"});
  one->say_message(
      wire::bundle(std::vector<wire::WireBody>(500, good)));  // larger than bundles are
  one->say_message(wire::bundle({wire::bundle({good})}));     // no bundle in a bundle
  EXPECT_TRUE(counted(Refusal::malformed, 5));
  EXPECT_EQ(star.hub->refusals().total(), 5u);
  EXPECT_EQ(star.at_hub.size(), 3u);
}

struct Narrow : Hostile {
  static LinkOptions limits() {
    LinkOptions link;
    link.max_bytes = 10000;
    link.max_header_bytes = 2000;
    return link;
  }
  Narrow() : Hostile(limits()) {}
};

TEST_F(Narrow, OversizedMessagesAreRefused) {
  one->say({std::string(3000, 'x')});
  EXPECT_TRUE(counted(Refusal::oversized, 1));
  one->say({"x", std::string(6000, 'x'), std::string(6000, 'x')});
  EXPECT_TRUE(counted(Refusal::oversized, 2));
  one->say(std::vector<std::string>(wire::max_parts + 10, ""));
  EXPECT_TRUE(counted(Refusal::oversized, 3));
  one->say_message(frame("one", "hub"));
  star.at_hub.wait_for(1);
  one->say(
      {std::string(20000, 'x')});  // ZeroMQ itself reads no part this long: the connection ends
  EXPECT_EQ(star.hub_events.wait_for(2)[1].what, PeerEvent::What::lost);
}

TEST_F(Hostile, StrangersWithoutCurveAreTurnedAwayAtTheDoor) {
  Raw plain(star, "", nullptr);
  plain.say_message(frame("one", "hub"));
  EXPECT_TRUE(counted(Refusal::failed_handshake));
  const KeyPair unknown = new_keys();
  Raw stranger(star, "", &unknown);
  stranger.say_message(frame("one", "hub"));
  EXPECT_TRUE(counted(Refusal::unknown_key));
  one->say_message(frame("one", "hub"));
  EXPECT_EQ(star.at_hub.wait_for(1).size(), 1u);
}

TEST_F(Hostile, ThousandsOfRandomMessagesDoNotDisturbTheOthers) {
  auto& two = *star.spokes["two"];
  two.attach("two", [](Frame) {});
  two.open();
  star.hub_events.wait_for(2);
  const wire::WireBody good = frame("one", "hub", 1000);
  std::mt19937_64 random(7);
  std::size_t sent = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string header = good.header;
    for (std::uint64_t n = 1 + random() % 4; n > 0; --n)
      header[random() % header.size()] = static_cast<char>(random());
    if (random() % 4 == 0) header.resize(random() % header.size());
    if (header.size() < 3 || header[1] == 1) continue;  // what could be a true send_bye
    one->say({header, std::string(random() % 5000, 'x')});
    if (i % 30 != 0) continue;
    ++sent;
    ASSERT_TRUE(two.send({{"hub", "actor"}, {"two", ""}, 1, Kind::reply, "still here", {}}));
  }
  EXPECT_TRUE(counted(Refusal::malformed, 500));
  EXPECT_TRUE(becomes([&] {
    std::size_t heard = 0;
    for (const auto& come : star.at_hub.wait_for(star.at_hub.size()))
      heard += come.from.node == "two";
    return heard == sent;
  }));
}

TEST(HostileHub, APeerThatFallsSilentIsLostWithinSeconds) {
  LinkOptions link;
  link.silence = std::chrono::milliseconds(300);
  Star star({{"one"}, false, link});
  star.hub->open();
  Raw one(star, "", &star.keys["one"]);
  one.hello();
  EXPECT_EQ(star.hub_events.wait_for(2)[1].why, "it sent no message or heartbeat for 0.3 s");
}

TEST(HostileHub, APeerWhoseConnectionEndsIsLostAtOnce) {
  LinkOptions link;
  link.silence = std::chrono::minutes(5);  // far beyond the time for which the test waits
  Star star({{"one", "two"}, false, link});
  star.hub->open();
  auto one = std::make_unique<Raw>(star, "", &star.keys["one"]);
  one->hello();
  star.hub_events.wait_for(1);
  one.reset();
  const PeerEvent lost = star.hub_events.wait_for(2)[1];
  EXPECT_EQ(lost.node, "one");
  EXPECT_EQ(lost.why, "its connection ended: the process died or was stopped");
}

TEST(HostileHub, QuietPeersThatBeatAreKept) {
  LinkOptions link;
  link.silence = std::chrono::seconds(1);
  Star star({{"one"}, false, link});
  star.join();
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(2500);
  EXPECT_TRUE(becomes([&] { return std::chrono::steady_clock::now() > until; }));
  EXPECT_EQ(star.hub_events.size() + star.spoke_events.size(), 2u);
}

}  // namespace
}  // namespace troupe::transports
