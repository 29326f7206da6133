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

}  // namespace
}  // namespace troupe::transports
