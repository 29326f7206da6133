// Nodes of actors over hub and spokes: what holds in one process holds between processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "actors/runtime/node.h"
#include "actors/runtime/run.h"
#include "actors/runtime/thread_scheduler.h"
#include "tests/transports/star.h"

namespace troupe::actors {
namespace {

using transports::Star;

struct Double {
  using Reply = std::vector<float>;
  static constexpr std::string_view name = "double";
  std::vector<float> values;
};
inline auto fields(Double& m) {
  return std::tie(m.values);
}
struct Refuse {
  using Reply = void;
  static constexpr std::string_view name = "refuse";
  std::string why;
};
inline auto fields(Refuse& m) {
  return std::tie(m.why);
}
/// Has the name of Double but other fields.
struct FalseDouble {
  using Reply = std::vector<float>;
  static constexpr std::string_view name = "double";
  std::string text;
  bool more = false;
};
inline auto fields(FalseDouble& m) {
  return std::tie(m.text, m.more);
}

struct Worker {
  using Handled = Messages<Double, Refuse>;
  std::shared_future<void> go;
  std::vector<float> on(Double message) {
    if (go.valid()) go.wait();
    for (float& value : message.values) value *= 2;
    return std::move(message.values);
  }
  Result<> on(Refuse message) { return fail(Errc::unsupported, message.why); }
};

/// A controller at the hub and a worker at the spoke "one".
struct Cluster {
  explicit Cluster(bool tcp, Worker worker = {}, ActorOptions placement = {})
      : star({{"one"}, tcp, {}}), controller("hub", scheduler, *star.hub) {
    node = std::make_unique<Node>("one", worker_scheduler, *star.spokes["one"]);
    node->spawn("worker", std::move(worker), std::move(placement));
    star.hub->open();
    star.spokes["one"]->open();
    star.hub_events.wait_for(1);
    star.spoke_events.wait_for(1);
  }
  ActorRef<Double, Refuse> worker() { return controller.ref({"one", "worker"}, Worker::Handled{}); }

  Star star;
  ThreadScheduler scheduler, worker_scheduler;
  Node controller;
  std::unique_ptr<Node> node;
};

class OverZmq : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Nodes, OverZmq, testing::Bool(),
                         [](const auto& each) { return each.param ? "Tcp" : "Ipc"; });

TEST_P(OverZmq, AskedWorkersAnswer) {
  Cluster cluster(GetParam());
  auto worker = cluster.worker();
  const auto story = [&]() -> Task<void> {
    std::vector<Reply<std::vector<float>>> replies;
    for (int i = 0; i < 20; ++i)
      replies.push_back(worker.ask(Double{std::vector<float>(1 + 5000 * i, 1.5f)}));
    for (int i = 0; i < 20; ++i) {
      auto& reply = replies[i];
      const auto values = co_await reply.get();
      EXPECT_EQ(values, std::vector<float>(1 + 5000 * i, 3.0f));
    }
  };
  run(cluster.controller, story());
}

TEST_P(OverZmq, ErrorsComeBackWithTheirKind) {
  Cluster cluster(GetParam());
  auto worker = cluster.worker();
  auto liar = cluster.controller.ref({"one", "worker"}, Messages<FalseDouble>{});
  auto nobody = cluster.controller.ref({"one", "nobody"}, Messages<Double>{});
  const auto story = [&]() -> Task<void> {
    auto refusing = worker.ask(Refuse{"not today"});
    const auto refused = co_await refusing.try_get();
    EXPECT_EQ(refused.error().code, Errc::unsupported);
    EXPECT_EQ(refused.error().what, "not today");
    auto lying = liar.ask(FalseDouble{"x"});
    const auto malformed = co_await lying.try_get();
    EXPECT_EQ(malformed.error().code, Errc::bad_input);
    EXPECT_EQ(malformed.error().what,
              "message 'double' from node 'hub': expected a list of 1 fields, found a list of 2");
    auto missing = nobody.ask(Double{});
    const auto absent = co_await missing.try_get();
    EXPECT_EQ(absent.error().code, Errc::not_found);
    auto again = worker.ask(Double{{4}});
    const auto values = co_await again.get();
    EXPECT_EQ(values, std::vector<float>{8});
  };
  run(cluster.controller, story());
}

TEST_P(OverZmq, AFullMailboxRefuses) {
  std::promise<void> go;
  Cluster cluster(GetParam(), Worker{go.get_future().share()}, {.mailbox = 2});
  auto worker = cluster.worker();
  const auto story = [&]() -> Task<void> {
    std::vector<Reply<std::vector<float>>> replies;
    for (int i = 0; i < 6; ++i) replies.push_back(worker.ask(Double{{1}}));
    auto& last = replies.back();
    const auto refused = co_await last.try_get();
    EXPECT_EQ(refused.error().code, Errc::full);
    go.set_value();
    auto& first = replies.front();
    const auto done = co_await first.get();
    EXPECT_EQ(done, std::vector<float>{2});
  };
  run(cluster.controller, story());
}

TEST_P(OverZmq, AnAskOfAWorkerThatGoesEndsAtOnce) {
  std::promise<void> go;
  Cluster cluster(GetParam(), Worker{go.get_future().share()});
  auto worker = cluster.worker();
  const auto story = [&]() -> Task<void> {
    auto reply = worker.ask(Double{{1}});
    cluster.star.spokes["one"]->close();
    const auto lost = co_await reply.try_get();
    EXPECT_EQ(lost.error().code, Errc::closed);
    EXPECT_EQ(lost.error().what,
              "'double' of one/worker will not be answered: node 'one' is gone: it closed the "
              "connection");
    go.set_value();
  };
  run(cluster.controller, story());
}

}  // namespace
}  // namespace troupe::actors
