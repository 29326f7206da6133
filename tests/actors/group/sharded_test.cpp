#include "actors/group/sharded.h"

#include <gmock/gmock.h>

#include <atomic>
#include <memory>

#include "actors/runtime/node.h"
#include "actors/runtime/run.h"
#include "actors/runtime/thread_scheduler.h"
#include "engine/parallel/one_rank.h"
#include "tests/actors/group/toy.h"
#include "transports/inproc/loopback.h"

namespace troupe::actors::group {
namespace {

using engine::parallel::Mesh;
using test::Fault;
using test::Stumble;
using test::Total;
using test::Toy;
using ::testing::AllOf;
using ::testing::HasSubstr;

using ToyRef = ActorRef<Total, Stumble>;

std::unique_ptr<Toy> make_toy(Mesh mesh) {
  return std::make_unique<Toy>(std::move(mesh));
}

template <class M>
Task<Result<typename M::Reply>> asked(ToyRef to, M message) {
  auto asking = to.ask(std::move(message), std::chrono::seconds(60));
  Result<typename M::Reply> reply = co_await asking.try_get();
  co_return reply;
}

struct Group : testing::Test {
  ThreadScheduler scheduler;
  transports::Loopback network;
  std::vector<std::string> deaths;
  std::unique_ptr<Node> node = std::make_unique<Node>(
      "main", scheduler, network, NodeOptions{.on_death = [this](const Death& death) {
        deaths.push_back(death.death_reason);
      }});

  ToyRef toy(int ranks, std::chrono::milliseconds deadline = std::chrono::seconds(60),
             std::string name = "toy") {
    auto sharded = value_or_throw(
        shard_over_threads<Toy>(name, {.dp = ranks}, make_toy, {.deadline = deadline}));
    return node->spawn(name, std::move(sharded), {.executor = name});
  }
  template <class M>
  Result<typename M::Reply> ask(ToyRef to, M message) {
    return run(*node, asked<M>(std::move(to), std::move(message)));
  }
};

std::vector<double> numbers(int n) {
  std::vector<double> values(n);
  for (int i = 0; i < n; ++i)
    values[i] = i % 97;  // whole: no rounding, so the number of ranks cannot show
  return values;
}

TEST_F(Group, AnyNumberOfRanksGivesTheSameReplies) {
  const auto one = toy(1, std::chrono::seconds(60), "one"),
             two = toy(2, std::chrono::seconds(60), "two"),
             four = toy(4, std::chrono::seconds(60), "four");
  int asks = 0;
  for (const int n : {0, 1, 5, 100, 100003}) {
    const Total message{numbers(n), std::string(n % 7, 'x')};
    const std::vector<double> expected{
        std::accumulate(message.numbers.begin(), message.numbers.end(), 0.0),
        static_cast<double>(n), static_cast<double>(++asks), static_cast<double>(n % 7)};
    for (const auto& ref : {one, two, four}) EXPECT_EQ(ask(ref, message).value(), expected) << n;
  }
}

TEST_F(Group, AnErrorOfOneRankReachesTheAskerWithItsRankAndTheGroupContinues) {
  const auto ref = toy(4);
  for (const int rank : {0, 1, 3}) {
    const auto reply = ask(ref, Stumble{rank, Fault::failure});
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, Errc::io);
    EXPECT_EQ(reply.error().what, cat("rank ", rank, " of 4: the disk is gone"));
  }
  EXPECT_EQ(ask(ref, Total{numbers(10), ""}).value()[0], 45);
}

TEST_F(Group, WhatAllRanksSayIsSaidOnce) {
  const auto reply = ask(toy(3), Stumble{0, Fault::same_failure});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Errc::bad_input);
  EXPECT_EQ(reply.error().what, "row 7 is empty");
}

TEST_F(Group, AMistakeOnAnyRankEndsTheGroupAndItsActorWithTheWords) {
  for (const int rank : {0, 1, 3})
    for (const bool early : {false, true}) {
      const auto name = cat("toy", rank, early);
      const auto ref = toy(4, std::chrono::seconds(60), name);
      const auto reply = ask(ref, Stumble{rank, Fault::bug, early});
      ASSERT_FALSE(reply);
      EXPECT_EQ(reply.error().code, Errc::internal);
      EXPECT_THAT(reply.error().what, AllOf(HasSubstr(cat("main/", name, " died")),
                                            HasSubstr("two and two make five")));
      EXPECT_EQ(reply.error().what.find("the group has ended") != std::string::npos, rank > 0)
          << reply.error().what;
      const auto later = ask(ref, Total{});
      ASSERT_FALSE(later);
      EXPECT_EQ(later.error().code, Errc::closed);
    }
  node->stop();
  EXPECT_EQ(deaths.size(), 6u);
}

TEST_F(Group, AFailureThatLeavesOthersInACollectiveEndsTheGroupAtTheDeadline) {
  const auto reply = ask(toy(2, std::chrono::milliseconds(100)), Stumble{1, Fault::failure, true});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Errc::internal);
  EXPECT_THAT(reply.error().what, HasSubstr("timed out"));
}

TEST_F(Group, AMessageThatFollowersCannotDecodeIsRefusedBeforeAnybodyRuns) {
  const auto ref = toy(2);
  const auto reply = ask(ref, Stumble{0, static_cast<Fault>(77)});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Errc::bad_input);
  EXPECT_THAT(reply.error().what,
              AllOf(HasSubstr("rank 1 of 2: "), HasSubstr("message 'stumble'")));
  EXPECT_FALSE(ask(ref, Total{{}, "\xff"})) << "not UTF-8: refused by the leader alone";
  EXPECT_EQ(ask(ref, Total{}).value()[2], 1) << "nobody has handled anything before";
}

TEST_F(Group, StoppingTheNodeEndsTheFollowers) {
  static std::atomic<int> alive = 0;
  struct Counted : Toy {
    explicit Counted(Mesh mesh) : Toy(std::move(mesh)) { ++alive; }
    ~Counted() { --alive; }
  };
  const auto make = [](Mesh mesh) { return std::make_unique<Counted>(std::move(mesh)); };
  node->spawn("toy", value_or_throw(shard_over_threads<Counted>("toy", {.dp = 2, .tp = 2}, make)));
  EXPECT_EQ(alive, 4);
  node->stop();
  EXPECT_EQ(alive, 0);
}

TEST_F(Group, AnActorThatCannotBeMadeOnOneRankIsAnErrorForItsMaker) {
  const auto failing = [](Mesh mesh) -> std::unique_ptr<Toy> {
    if (mesh.world().rank() == 2) throw Failure(Error{Errc::not_found, "there is no checkpoint"});
    return std::make_unique<Toy>(std::move(mesh));
  };
  const auto sharded = shard_over_threads<Toy>("toy", {.tp = 4}, failing);
  ASSERT_FALSE(sharded);
  EXPECT_EQ(sharded.error().code, Errc::not_found);
  EXPECT_EQ(sharded.error().what, "rank 2 of 4: there is no checkpoint");
  const auto nothing = shard_over_threads<Toy>("toy", {.tp = 0}, failing);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, Errc::usage);
}

TEST_F(Group, AMistakeWhileTheActorIsMadeIsThrownToItsMaker) {
  const auto wrong = [](Mesh mesh) -> std::unique_ptr<Toy> {
    check(mesh.world().rank() != 1, "a plan of rank 1");
    return std::make_unique<Toy>(std::move(mesh));
  };
  try {
    (void)shard_over_threads<Toy>("toy", {.tp = 3}, wrong);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Bug& bug) {
    EXPECT_THAT(bug.what(), AllOf(HasSubstr("rank 1 ended"), HasSubstr("a plan of rank 1")));
  }
}

// Several actors on the same ranks share one channel, as under mpirun.
TEST_F(Group, SeveralActorsLiveInOneWorldAndTheMessageNamesItsActor) {
  std::atomic<int> ended_well = 0;
  auto followers = std::make_unique<FollowerThreads>(
      3, engine::parallel::ThreadGroupOptions{}, [&](auto& world) {
        GroupChannel channel(world.split(0, world.rank()));
        Toy policy(value_or_throw(Mesh::create(world.split(0, world.rank()), {.tp = 3})));
        Toy reference(value_or_throw(Mesh::create(world.split(0, world.rank()), {.dp = 3})));
        HandlerTable handlers;
        handlers.add("policy", policy);
        handlers.add("reference", reference);
        handlers.serve(channel);
        ++ended_well;
      });
  auto& world = followers->leader();
  auto channel = std::make_shared<GroupChannel>(world.split(0, world.rank()));
  auto policy = make_toy(value_or_throw(Mesh::create(world.split(0, world.rank()), {.tp = 3})));
  auto reference = make_toy(value_or_throw(Mesh::create(world.split(0, world.rank()), {.dp = 3})));
  const auto one =
      node->spawn("policy", std::make_unique<Sharded<Toy>>("policy", channel, std::move(policy)));
  const auto two = node->spawn(
      "reference", std::make_unique<Sharded<Toy>>("reference", channel, std::move(reference)));
  const auto three = node->spawn(
      "critic", std::make_unique<Sharded<Toy>>("critic", channel, std::make_unique<Toy>(Mesh())));
  channel.reset();
  EXPECT_EQ(ask(one, Total{}).value()[2], 1);
  EXPECT_EQ(ask(one, Total{}).value()[2], 2);
  EXPECT_EQ(ask(two, Total{numbers(4), ""}).value(), (std::vector<double>{6, 4, 1, 0}));
  const auto unknown = ask(three, Total{});
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().what,
              HasSubstr("rank 1 of 3: there is no actor 'critic' that handles 'total'"));
  EXPECT_EQ(ask(two, Total{}).value()[2], 2);
  node->stop();
  followers.reset();
  EXPECT_EQ(ended_well, 2);
}

TEST_F(Group, ActorsOfOneWorldOnTwoExecutorsAreABug) {
  GroupChannel channel(std::make_unique<engine::parallel::OneRank>());
  const GroupChannel::ExclusiveCall first(channel);
  EXPECT_THROW(GroupChannel::ExclusiveCall second(channel), Bug);
}

}  // namespace
}  // namespace troupe::actors::group
