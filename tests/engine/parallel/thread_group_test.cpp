#include "engine/parallel/thread_group.h"

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <numeric>

#include "engine/base/errors/check.h"
#include "engine/base/errors/error.h"
#include "engine/parallel/all_reduce.h"
#include "tests/support/on_ranks.h"

namespace troupe::engine::parallel {
namespace {

using test::on_ranks;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::span<std::byte> bytes(auto& values) {
  return std::as_writable_bytes(std::span(values));
}

/// The error with which `call` throws a Failure.
Error error_of(const auto& call) {
  try {
    call();
  } catch (const Failure& failure) {
    return failure.error();
  }
  return {Errc::internal, "nothing was thrown"};
}

TEST(ThreadGroup, MovesBytesForOneToEightRanks) {
  for (int ranks = 1; ranks <= 8; ++ranks)
    on_ranks(ranks, [&](Communicator& group) {
      ASSERT_EQ(group.size(), ranks);
      const int me = group.rank();
      for (int root = 0; root < ranks; ++root) {
        std::vector<int> data{me, 10 * me};
        if (root % 2)
          group.broadcast(bytes(data), root, "a broadcast");
        else
          group.broadcast_idle(bytes(data), root, "an idle broadcast");
        EXPECT_EQ(data, (std::vector<int>{root, 10 * root}));
      }
      std::vector<int> mine{me, -me}, all(2 * ranks), blocks(3 * ranks), theirs(3 * ranks);
      group.all_gather(bytes(mine), bytes(all), "a gathering");
      for (int r = 0; r < ranks; ++r) EXPECT_EQ(all[2 * r], r) << all[2 * r + 1];
      for (int i = 0; i < 3 * ranks; ++i) blocks[i] = 1000 * me + i;
      group.all_to_all(bytes(blocks), bytes(theirs), "an exchange");
      for (int r = 0; r < ranks; ++r)
        for (int i = 0; i < 3; ++i) EXPECT_EQ(theirs[3 * r + i], 1000 * r + 3 * me + i);
      std::vector<int> none;
      group.broadcast(bytes(none), 0, "no bytes");
      group.all_gather(bytes(none), bytes(none), "no bytes");
      group.all_to_all(bytes(none), bytes(none), "no bytes");
    });
}

TEST(ThreadGroup, ManyCollectivesInARowStaySeparate) {
  on_ranks(4, [&](Communicator& group) {
    for (int round = 0; round < 2000; ++round) {
      std::vector<int> mine{round * 10 + group.rank()}, all(4);
      group.all_gather(bytes(mine), bytes(all), "a round");
      for (int r = 0; r < 4; ++r) ASSERT_EQ(all[r], round * 10 + r);
    }
  });
}

TEST(ThreadGroup, SplitsByColourInTheOrderOfTheKeys) {
  on_ranks(6, [&](Communicator& world) {
    // Colours 0 and 1; within one, the last rank of the world comes first.
    const auto half = world.split(world.rank() % 2, -world.rank());
    ASSERT_EQ(half->size(), 3);
    EXPECT_EQ(half->rank(), (5 - world.rank()) / 2);
    std::vector<int> mine{world.rank()}, all(3);
    half->all_gather(bytes(mine), bytes(all), "half of the world");
    EXPECT_EQ(all, world.rank() % 2 ? (std::vector<int>{5, 3, 1}) : (std::vector<int>{4, 2, 0}));
    const auto alone = half->split(half->rank(), 0);
    EXPECT_EQ(alone->size(), 1);
    barrier(*alone, "alone");
    barrier(world, "all of them");
  });
}

TEST(ThreadGroup, AbortWakesEveryRankAlsoOfGroupsThatWereSplitOff) {
  std::atomic<int> woken = 0;
  on_ranks(4, [&](Communicator& world) {
    const auto pair = world.split(world.rank() / 2, 0);
    if (world.rank() == 3) {
      world.abort("the disk is full");
      return;
    }
    const Error error = error_of([&] {
      int value = 0;
      std::span<int> data(&value, 1);
      if (world.rank() == 2)
        pair->broadcast_idle(std::as_writable_bytes(data), 1, "the next message");
      barrier(world.rank() == 0 ? *pair : world, "gradients of step 7");
      barrier(world, "gradients of step 8");
    });
    EXPECT_EQ(error.code, Errc::closed);
    EXPECT_THAT(error.what, HasSubstr("rank 3 ended: the disk is full"));
    // The group remains closed.
    EXPECT_EQ(error_of([&] { barrier(*pair, "later"); }).code, Errc::closed);
    ++woken;
  });
  EXPECT_EQ(woken, 3);
}

TEST(ThreadGroup, AMissedDeadlineNamesTheWaitAndWhoIsMissing) {
  ThreadGroup group(4, {.deadline = std::chrono::milliseconds(30)});
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int r = 0; r < 4; ++r) ranks.push_back(group.rank(r));
  auto other = std::async(std::launch::async, [&] {
    return error_of([&] { barrier(*ranks[2], "gradients of step 7"); });
  });
  const Error mine = error_of([&] { barrier(*ranks[0], "gradients of step 7"); });
  const Error theirs = other.get();
  // One of the two gives up first and ends the group; the other one hears of it.
  EXPECT_TRUE(mine.code == Errc::timeout || theirs.code == Errc::timeout);
  for (const Error& error : {mine, theirs})
    EXPECT_THAT(error.what, AllOf(HasSubstr("'gradients of step 7'"), HasSubstr("waited 0.03 s")));
  EXPECT_THAT(mine.what, HasSubstr("1, 3"));
  EXPECT_EQ(error_of([&] { barrier(*ranks[1], "too late"); }).code, Errc::closed);
}

TEST(ThreadGroup, ReportsAMissedDeadlineBeforeItEnds) {
  std::string why;
  ThreadGroup group(3, {.deadline = std::chrono::milliseconds(5),
                        .on_timeout = [&](const std::string& given) { why = given; }});
  const auto waiting = group.rank(0), absent = group.rank(1), left = group.rank(2);
  auto other = std::async(std::launch::async,
                          [&] { return error_of([&] { barrier(*left, "gradients"); }); });
  const Error error = error_of([&] { barrier(*waiting, "gradients"); });
  other.get();
  EXPECT_THAT(why, HasSubstr("'gradients': waited 0.005 s for rank"));
  EXPECT_THAT(why, AllOf(HasSubstr("1"), HasSubstr("of 3, which neither arrived nor aborted")));
}

TEST(ThreadGroup, AnIdleWaitHasNoDeadline) {
  ThreadGroup group(2, {.deadline = std::chrono::milliseconds(5)});
  auto leader = group.rank(0), follower = group.rank(1);
  int value = 0;
  auto idle = std::async(std::launch::async, [&] {
    return error_of(
        [&] { follower->broadcast_idle(std::as_writable_bytes(std::span(&value, 1)), 0, "mail"); });
  });
  EXPECT_EQ(idle.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  leader.reset();
  const Error error = idle.get();
  EXPECT_EQ(error.code, Errc::closed);
  EXPECT_THAT(error.what, HasSubstr("rank 0 left the group"));
}

TEST(ThreadGroup, WhoWaitsForARankThatLeftHearsItAtOnce) {
  on_ranks(3, [&](Communicator& world) {
    if (world.rank() == 1) return;
    const Error error = error_of([&] { barrier(world, "the last step"); });
    EXPECT_EQ(error.code, Errc::closed);
    EXPECT_THAT(error.what, HasSubstr("rank 1 left the group"));
  });
}

TEST(ThreadGroup, CallsThatDoNotMatchAreABugThatNamesBoth) {
  std::atomic<int> bugs = 0;
  const auto expect_bug = [&](const auto& call, const std::string& first,
                              const std::string& second) {
    try {
      call();
      ADD_FAILURE() << "no error";
    } catch (const Bug& bug) {
      EXPECT_THAT(bug.what(), AllOf(HasSubstr(first), HasSubstr(second)));
      ++bugs;
    }
  };
  on_ranks(2, [&](Communicator& group) {
    std::vector<char> data(group.rank() == 0 ? 8 : 12);
    expect_bug([&] { group.broadcast(bytes(data), 0, "a message"); },
               "rank 0 calls broadcast of 8 bytes", "rank 1 calls broadcast of 12 bytes");
  });
  on_ranks(2, [&](Communicator& group) {
    std::vector<char> data(4), all(8);
    expect_bug(
        [&] {
          if (group.rank() == 0)
            group.broadcast(bytes(data), 0, "a message");
          else
            group.all_gather(bytes(data), bytes(all), "statistics");
        },
        "broadcast of 4 bytes with root 0 ('a message')",
        "all_gather of 4 bytes with root 0 ('statistics')");
  });
  on_ranks(2, [&](Communicator& group) {
    std::vector<char> data(4);
    expect_bug([&] { group.broadcast(bytes(data), group.rank(), "a message"); }, "with root 0",
               "with root 1");
  });
  EXPECT_EQ(bugs, 6);
}

TEST(ThreadGroup, SpansOfTheWrongSizeAreABug) {
  OneRank alone;
  ThreadGroup group(2);
  const auto rank = group.rank(0);
  std::vector<char> three(3), four(4);
  EXPECT_THROW(rank->all_gather(bytes(three), bytes(four), "x"), Bug);
  EXPECT_THROW(rank->all_to_all(bytes(three), bytes(three), "x"), Bug);
  EXPECT_THROW(rank->broadcast(bytes(three), 2, "x"), Bug);
  EXPECT_THROW(alone.all_gather(bytes(three), bytes(four), "x"), Bug);
  EXPECT_THROW(group.rank(0), Bug);
  EXPECT_THROW(group.rank(2), Bug);
}

TEST(OneRank, CopiesAndEndsByItsOwnWords) {
  OneRank alone;
  std::vector<int> mine{1, 2}, all(2), theirs(2);
  alone.all_gather(bytes(mine), bytes(all), "x");
  alone.all_to_all(bytes(mine), bytes(theirs), "x");
  alone.broadcast_idle(bytes(mine), 0, "x");
  EXPECT_EQ(all, mine);
  EXPECT_EQ(theirs, mine);
  EXPECT_EQ(alone.split(3, 4)->size(), 1);
  alone.abort("enough");
  EXPECT_THAT(error_of([&] { alone.broadcast(bytes(mine), 0, "more"); }).what,
              HasSubstr("'more': rank 0 ended: enough"));
}

}  // namespace
}  // namespace troupe::engine::parallel
