#include "tests/mp/actor.h"

#include "actors/group/sharded.h"
#include "actors/runtime/node.h"
#include "actors/runtime/run.h"
#include "actors/runtime/thread_scheduler.h"
#include "tests/actors/group/toy.h"
#include "tests/mp/collectives.h"
#include "transports/inproc/loopback.h"

namespace troupe::test {
namespace {

using namespace actors;
using engine::parallel::Communicator, engine::parallel::Mesh;

std::unique_ptr<Toy> make_toy(Mesh mesh) {
  return std::make_unique<Toy>(std::move(mesh));
}

/// Both toys are on all ranks of the world, with different grids.
constexpr auto policy = "policy", reference = "reference";
std::unique_ptr<Toy> make_at(Communicator& world, bool tp) {
  const engine::parallel::Grid grid =
      tp ? engine::parallel::Grid{.tp = world.size()} : engine::parallel::Grid{.dp = world.size()};
  return make_toy(value_or_throw(Mesh::create(world.split(0, world.rank()), grid)));
}

template <class M>
Task<typename M::Reply> asked(ActorRef<Total, Stumble> to, M message) {
  auto asking = to.ask(std::move(message), std::chrono::seconds(60));
  if constexpr (std::is_void_v<typename M::Reply>) {
    co_await asking.get();
  } else {
    typename M::Reply reply = co_await asking.get();
    co_return reply;
  }
}

using Asks = std::function<std::string(Node& node, ActorRef<Total, Stumble> one,
                                       ActorRef<Total, Stumble> two)>;

std::string in_a_world(Communicator& world, const Asks& asks) {
  auto channel = std::make_shared<group::GroupChannel>(world.split(0, world.rank()));
  auto one = make_at(world, true), two = make_at(world, false);
  if (world.rank() > 0) {
    group::HandlerTable handlers;
    handlers.add(policy, *one);
    handlers.add(reference, *two);
    handlers.serve(*channel);
    return {};
  }
  ThreadScheduler scheduler;
  transports::Loopback network;
  Node node("main", scheduler, network);
  const auto first =
      node.spawn(policy, std::make_unique<group::Sharded<Toy>>(policy, channel, std::move(one)));
  const auto second = node.spawn(
      reference, std::make_unique<group::Sharded<Toy>>(reference, channel, std::move(two)));
  channel.reset();
  return asks(node, first, second);
}

}  // namespace

std::string ask_an_actor(Communicator& world) {
  return in_a_world(world, [&](Node& node, auto one, auto two) -> std::string {
    const auto threads = node.spawn(
        "threads",
        value_or_throw(group::shard_over_threads<Toy>("threads", {.dp = world.size()}, make_toy)),
        {.executor = "threads"});
    for (const std::size_t n : {0, 1, 1000, 1000003}) {
      const Total message{seeded<double>(0, n, n), "a note"};
      const auto expected = run(node, asked<Total>(threads, message)),
                 first = run(node, asked<Total>(one, message)),
                 second = run(node, asked<Total>(two, message));
      const std::size_t bytes = expected.size() * sizeof(double);
      if (first.size() != expected.size() || std::memcmp(first.data(), expected.data(), bytes) != 0)
        return "the policy's total is wrong";
      if (second.size() != expected.size() ||
          std::memcmp(second.data(), expected.data(), bytes) != 0)
        return "the reference's is wrong";
    }
    try {
      run(node, asked<Stumble>(one, Stumble{1, Fault::failure}));
      return "the failure of rank 1 was not heard";
    } catch (const Failure& failure) {
      const std::string words = failure.what();
      return words == cat("rank 1 of ", world.size(), ": the disk is gone") ? "" : words;
    }
  });
}

std::string ask_for_a_mistake(Communicator& world) {
  return in_a_world(world, [](Node& node, auto one, auto) -> std::string {
    run(node, asked<Stumble>(one, Stumble{1, Fault::bug, true}));
    return "the mistake of rank 1 was not heard";
  });
}

}  // namespace troupe::test
