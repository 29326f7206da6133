// One side of a link, over given time: credit, silence, and what a lost peer owed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transports/zmq/link.h"

namespace troupe::transports {
namespace {

Frame ask(std::uint64_t id, Kind kind = Kind::request) {
  return {{"peer", "actor"}, {"me", ""}, id, kind, "note", {}};
}
wire::WireBody bytes(std::size_t size) {
  return {std::string(size, 'x'), {}};
}

struct Joined : Link {
  explicit Joined(Window window) : Link("peer", window) { join(7, window, LinkTime{}); }
};

TEST(Link, NothingIsSentBeforeThePeerHasSaidHello) {
  Link link("peer", {4, 1000});
  ASSERT_TRUE(link.offer(ask(1), bytes(10)));
  EXPECT_FALSE(link.next());
  EXPECT_TRUE(link.join(7, {4, 1000}, LinkTime{}));
  EXPECT_TRUE(link.next());
  EXPECT_FALSE(link.next());
  EXPECT_FALSE(link.join(8, {4, 1000}, LinkTime{}));
}

TEST(Link, RequestsBeyondTheWindowAreRefusedUntilThePeerHasConsumed) {
  Joined link({3, 1000});
  for (std::uint64_t id : {1, 2, 3}) ASSERT_TRUE(link.offer(ask(id), bytes(10)));
  const Result<> refused = link.offer(ask(4), bytes(10));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::full);
  EXPECT_EQ(
      refused.error().what,
      "node 'peer' has 3 unconsumed messages of 30 bytes; its window is 3 messages and 1000 bytes; "
      "send fewer requests at a time");
  while (link.next()) {
  }
  EXPECT_TRUE(link.consumed({1, 10}));
  EXPECT_TRUE(link.offer(ask(4), bytes(10)));
  EXPECT_FALSE(link.offer(ask(5), bytes(10)));
}

TEST(Link, BytesCountTooButOneLargeMessageGoesAlone) {
  Joined link({10, 100});
  ASSERT_TRUE(link.offer(ask(1), bytes(5000)));
  EXPECT_FALSE(link.offer(ask(2), bytes(1)));
  EXPECT_TRUE(link.next());
  EXPECT_TRUE(link.consumed({1, 5000}));
  EXPECT_TRUE(link.offer(ask(2), bytes(60)));
  EXPECT_FALSE(link.offer(ask(3), bytes(60)));
}

TEST(Link, AnswersAreAlwaysTakenButLeaveWithinTheWindow) {
  Joined link({2, 100});
  for (std::uint64_t id = 1; id <= 5; ++id)
    ASSERT_TRUE(link.offer(ask(id, Kind::reply), bytes(30)));
  EXPECT_TRUE(link.next());
  EXPECT_TRUE(link.next());
  EXPECT_FALSE(link.next());
  EXPECT_TRUE(link.consumed({2, 60}));
  EXPECT_TRUE(link.next());
}

TEST(Link, CreditForWhatWasNotSentIsRefused) {
  Joined link({4, 1000});
  ASSERT_TRUE(link.offer(ask(1), bytes(10)));
  EXPECT_FALSE(link.consumed({1, 10}));
  ASSERT_TRUE(link.next());
  EXPECT_FALSE(link.consumed({1, 11}));
  EXPECT_TRUE(link.consumed({1, 10}));
  EXPECT_FALSE(link.consumed({0, 0}));
}

TEST(Link, ThePeerIsNotifiedOfWhatWasConsumedBeforeItsWindowIsUsedUp) {
  Joined link({8, 1000});
  EXPECT_FALSE(link.received(10));
  EXPECT_TRUE(link.received(10));
  EXPECT_EQ(link.received_totals().frames, 2u);
  EXPECT_FALSE(link.received(10));
  EXPECT_TRUE(link.received(240));
  Joined narrow({1, 1});
  EXPECT_TRUE(narrow.received(10));
}

TEST(Link, SilenceIsMeasuredFromTheLastWord) {
  using std::chrono::seconds;
  Joined link({4, 100});
  const LinkTime start{};
  link.heard(start + seconds(3));
  EXPECT_FALSE(link.silent_since(start + seconds(3)));
  EXPECT_TRUE(link.silent_since(start + seconds(4)));
  EXPECT_FALSE(Link("expected", {1, 1}).silent_since(start + seconds(4)));
}

TEST(Link, ALostPeerLeavesAnErrorForEveryAskItOwes) {
  Joined link({8, 1000});
  for (std::uint64_t id : {1, 2, 3}) ASSERT_TRUE(link.offer(ask(id), bytes(10)));
  link.answered(2);
  std::vector<Frame> errors = link.lose("it closed the connection");
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[1].id, 3u);
  EXPECT_EQ(errors[1].to, (Address{"me", ""}));
  const Error error = errors[1].body.take<Error>();
  EXPECT_EQ(error.code, Errc::closed);
  EXPECT_EQ(
      error.what,
      "'note' of peer/actor will not be answered: node 'peer' is gone: it closed the connection");
  EXPECT_TRUE(link.lose("again").empty());
  EXPECT_EQ(link.offer(ask(4), bytes(1)).error().code, Errc::closed);
}

TEST(Link, ASuccessorGetsTheRequestsThatAStatelessPeerOwed) {
  Link link("peer", {8, 1000}, true);
  ASSERT_TRUE(link.join(7, {8, 1000}, LinkTime{}));
  for (std::uint64_t id : {1, 2, 3}) ASSERT_TRUE(link.offer(ask(id), bytes(10 * id)));
  while (link.next()) {
  }
  link.answered(2);
  EXPECT_TRUE(link.lose("it died").empty()) << "their senders notice nothing";
  EXPECT_TRUE(link.offer(ask(4), bytes(40))) << "it waits for the successor";
  EXPECT_EQ(link.offer(ask(5, Kind::reply), bytes(1)).error().code, Errc::closed);
  EXPECT_FALSE(link.next());
  link.renew();
  EXPECT_FALSE(link.next()) << "it has not joined";
  ASSERT_TRUE(link.join(9, {8, 1000}, LinkTime{}));
  for (const std::size_t size : {10, 30, 40}) {
    const auto message = link.next();
    ASSERT_TRUE(message);
    EXPECT_EQ(wire::size_of(*message), size);
  }
  EXPECT_FALSE(link.next());
  EXPECT_FALSE(link.consumed({4, 80})) << "totals of the former peer do not count";
  EXPECT_TRUE(link.consumed({3, 80}));
}

TEST(Link, OpenRequestsAreCountedWithTheOldest) {
  const LinkTime start{};
  Joined link({8, 1000});
  EXPECT_EQ(link.open_requests().count, 0u);
  for (std::uint64_t id : {1, 2, 3})
    ASSERT_TRUE(link.offer(ask(id), bytes(1), start + std::chrono::seconds(id)));
  link.answered(1);
  EXPECT_EQ(link.open_requests().count, 2u);
  EXPECT_EQ(link.open_requests().oldest, "note");
  EXPECT_EQ(link.open_requests().since, start + std::chrono::seconds(2));
}

TEST(Link, AMessageToAnIncarnationThatWasLostIsRefused) {
  Joined link({8, 1000});
  Frame first = ask(1);
  first.to.incarnation = 1;
  EXPECT_TRUE(link.offer(first, bytes(10)));
  EXPECT_EQ(link.lose("it died").size(), 1u);
  link.renew();
  EXPECT_EQ(link.incarnation(), 2u);
  first.id = 2;
  const Result<> refused = link.offer(first, bytes(10));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::closed);
  EXPECT_EQ(refused.error().what,
            "node 'peer' is gone: incarnation 1 was lost, and number 2 has its place");
  first.to.incarnation = 2;
  EXPECT_TRUE(link.offer(first, bytes(10)));
  EXPECT_TRUE(link.offer(ask(3), bytes(10))) << "to the one that is there";
}

}  // namespace
}  // namespace troupe::transports
